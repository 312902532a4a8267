"""A model at work on a scenario: it is sent the conversation, and the answers that it answers becomes actions.

There is no other such loop. The search for solutions and the sampling of rollouts differ in the model they hand in: a
model with a ledger of answers, a model behind the recording gateway. Section 3.3 of EnvScaler (arXiv 2601.05808); tools
are the API's own, and a turn may have several calls, each of which is an action. In a conversation a text without a
call is for the user, so the tool for that is not offered.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.llm.base import ContextLengthError, Message, ModelReply, Tool, ToolCall
from backends.llm.meter import BudgetExceededError
from backends.llm.prompts import PromptTemplates
from worlds.actions import CHAT_TOOL, COMPLETED, STOP, ChatAction, read_action
from worlds.definitions import Call
from worlds.scenario_run import InteractionMode

if TYPE_CHECKING:
    from backends.llm.base import LanguageModel
    from backends.llm.meter import UsageMeter
    from worlds.scenario_run import ScenarioRun, StepOutcome

PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")
PROMPT_VERSIONS: Mapping[InteractionMode, str] = {
    InteractionMode.NON_CONVERSATIONAL: "solver-1",
    InteractionMode.CONVERSATIONAL: "dialogue-1",
}
"""Folder of the prompt of each mode."""
MAX_REMINDERS = 3
"""Reminders in a row that an answer is not an action; another such answer ends the work."""


class EpisodeEnd(StrEnum):
    """Why a model's work on a scenario ended."""

    COMPLETED = "completed"
    """The model ended the episode."""
    USER = "user"
    """The user ended the conversation."""
    TRUNCATED = "truncated"
    """The most actions are made."""
    FAULT = "fault"
    """The world's program has a fault."""
    TOO_LONG = "too-long"
    """The conversation exceeds the model's context."""
    NO_ACTION = "no-action"
    """The model does not act."""
    BUDGET = "budget"
    """The time or another budget is used up."""


@dataclass(frozen=True, kw_only=True)
class MadeCall:
    """A call, the value that it returned, and whether it changed the state."""

    call: Call
    result: Mapping[str, Any]
    is_changed: bool


class ScenarioAgent:
    """A model's work on a single scenario. Not thread-safe.

    Args:
        run: an episode that has just begun.
    """

    def __init__(self, run: ScenarioRun) -> None:
        self.run = run
        self.calls: list[MadeCall] = []
        """Calls in order, but for words to the user; those of unknown tools are among them."""
        self.end: EpisodeEnd | None = None
        self.detail = ""
        """A line for people on the end."""
        observation = run.observation
        self.tools = tuple(Tool(**tool) for tool in observation["tools"] if tool["name"] != CHAT_TOOL)
        opening = {"task": observation["task"]} if "task" in observation else {"greeting": observation["user"]}
        self.messages = list(
            PROMPTS.render_conversation(
                PROMPT_VERSIONS[run.mode], documentation=observation["documentation"], **opening
            )
        )
        self._names = frozenset(tool.name for tool in self.tools)
        self._reminders = 0

    @property
    def reward(self) -> float:
        """Reward of the present state, or of the final, 0..1.

        Raises:
            Transient: the container has ended.
        """
        return self.run.evaluate().reward

    def work(self, model: LanguageModel, meter: UsageMeter, *, deadline: float | None = None) -> EpisodeEnd:
        """Let a model act until the episode ends, and return why it did.

        Args:
            model: model that answers the conversation.
            meter: meter that counts usage and cost.
            deadline: monotonic seconds after which no request is made.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`, or the container has ended, or the
                user's model does not answer. The work until then is in this object.
        """
        while self.end is None:
            if deadline is not None and time.monotonic() >= deadline:
                self._finish(EpisodeEnd.BUDGET, "the time is used up")
                break
            try:
                reply = model.complete(self.messages, self.tools, meter=meter, deadline=deadline)
            except ContextLengthError as error:
                self._finish(EpisodeEnd.TOO_LONG, str(error))
            except BudgetExceededError as error:
                self._finish(EpisodeEnd.BUDGET, str(error))
            else:
                self._take_turn(reply)
        assert self.end is not None  # noqa: S101 - for the type checker
        return self.end

    def _take_turn(self, reply: ModelReply) -> None:
        self.messages.append(reply.message)
        if not reply.tool_calls:
            self._take_text(reply.text)
            return
        self._reminders = 0
        for call in reply.tool_calls:
            result = self._make_call(call)
            self.messages.append(Message(role="tool", text=result, tool_call_id=call.id, tool_name=call.name))
            if self.end is not None:
                return

    def _take_text(self, text: str) -> None:
        """Take a text without a call: words for the user, the end, or neither."""
        is_conversation = self.run.mode is InteractionMode.CONVERSATIONAL
        if not is_conversation and COMPLETED.lower() in text.lower():
            self._note(self.run.step({STOP: True}), EpisodeEnd.COMPLETED)
            return
        is_chat = is_conversation and isinstance(read_action(text, self._names, is_conversation=True), ChatAction)
        outcome = self.run.step({"text": text})
        self._note(outcome, EpisodeEnd.USER)
        if self.end is not None:
            return
        if is_chat:
            self._reminders = 0
            self.messages.append(Message(role="user", text=str(outcome.observation["data"])))
            return
        self._reminders += 1
        if self._reminders > MAX_REMINDERS:
            self._finish(EpisodeEnd.NO_ACTION, f"{self._reminders} answers in a row are no action")
            return
        end = "" if is_conversation else f", or answer {COMPLETED}"
        self.messages.append(Message(role="user", text=f"No tool call was found. Call a tool{end}."))

    def _make_call(self, call: ToolCall) -> str:
        """Make a call and return the text that the model reads about it."""
        before = self.run.digest
        if call.arguments is None:  # the API's form of a call whose arguments cannot be read
            outcome = self.run.step({"tool_calls": [{"function": {"name": call.name, "arguments": ""}}]})
        else:
            outcome = self.run.step({"tool": call.name, "arguments": dict(call.arguments)})
            if self.run.mode is InteractionMode.NON_CONVERSATIONAL or call.name != CHAT_TOOL:
                made = Call(tool=call.name, arguments=dict(call.arguments))
                is_changed = outcome.info.get("digest") != before
                self.calls.append(MadeCall(call=made, result=outcome.observation, is_changed=is_changed))
        self._note(outcome, EpisodeEnd.USER)
        return json.dumps(outcome.observation, ensure_ascii=False)

    def _note(self, outcome: StepOutcome, terminated: EpisodeEnd) -> None:
        """Note whether an action ended the episode; `terminated`: why, where neither limit nor fault did."""
        if "fault" in outcome.info:
            self._finish(EpisodeEnd.FAULT, str(outcome.info["fault"]))
        elif outcome.terminated:
            self._finish(terminated, "")
        elif outcome.truncated:
            self._finish(EpisodeEnd.TRUNCATED, f"{self.run.n_steps} actions are made")

    def _finish(self, end: EpisodeEnd, detail: str) -> None:
        self.end, self.detail = end, detail
