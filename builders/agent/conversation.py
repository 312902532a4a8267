"""Conversation with a model, in rounds: tool calls run until the model calls `test` or the conversation stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from backends.llm.base import ContextLengthError, LanguageModel, Message, ModelReply, ToolCall, estimate_tokens
from backends.llm.meter import BudgetExceededError, UsageMeter
from backends.llm.response import FINISH_LENGTH
from builders.agent.guards import ConversationGuard, ConversationStoppedError, StopReason
from builders.agent.history import MessageHistory
from builders.agent.prompt_templates import hash_prompts, render_prompt
from builders.agent.tools import EndTurn, Toolbox
from builders.agent.transcript import Transcript, TranscriptRecorder

TEST_TOOL = "test"
GIVE_UP_TOOL = "give_up"
MAX_SHRINKS = 4
"""Limit of attempts to shorten a conversation that the endpoint rejects as too long."""
NO_ANSWER = "[no answer]"
NOT_DONE = "Not done: `{tool}` ended your turn."


class Conversation:
    """Conversation with one model about one build.

    Args:
        model: the model that is queried.
        toolbox: its tools.
        system: the system prompt.
        meter: meter that counts tokens and cost, and raises when the budget is spent.
        seconds_left: function that returns the remaining time.
        answer_tokens: tokens reserved for an answer.
    """

    def __init__(
        self,
        model: LanguageModel,
        toolbox: Toolbox,
        system: str,
        *,
        meter: UsageMeter,
        seconds_left: Callable[[], float],
        answer_tokens: int,
    ) -> None:
        self.meter = meter
        self.guard = ConversationGuard()
        self._model = model
        self._toolbox = toolbox
        self._tools = toolbox.declare_tools()
        self._seconds_left = seconds_left
        room = model.context_tokens - answer_tokens - estimate_tool_tokens(toolbox)
        self._history = MessageHistory(max(room, model.context_tokens // 4))
        self._recorder = TranscriptRecorder(model.name, hash_prompts())
        self._pending_call: ToolCall | None = None
        self._add_message(Message(role="system", text=system))

    def run_round(self, message: str) -> str:
        """Send a message and run turns until the model calls `test`; return its rationale.

        `message`: the task, or the result of the last test.

        Raises:
            ConversationStoppedError: the conversation ended without another test.
            Transient, InputError, Stopped: endpoint or engine failed, the endpoint rejects the request, or the user
                ended the run.
        """
        try:
            self._deliver_result(message)
            while (rationale := self._run_turn()) is None:
                pass
        except BudgetExceededError as error:
            self._recorder.record_event("ended", StopReason.BUDGET, str(error))
            raise ConversationStoppedError(StopReason.BUDGET, str(error)) from error
        except ConversationStoppedError as error:
            self._recorder.record_event("ended", error.stop, error.detail)
            raise
        self._recorder.record_event("ended", TEST_TOOL, rationale)
        return rationale

    def build_transcript(self) -> Transcript:
        """Return the conversation so far."""
        return self._recorder.build_transcript(self.meter)

    def _add_message(self, message: Message) -> None:
        self._history.add(message)
        self._recorder.record_message(message)

    def _deliver_result(self, text: str) -> None:
        """Add a text as the result of the pending `test` call, else as a user message."""
        if self._pending_call is None:
            self._add_message(Message(role="user", text=text))
        else:
            self._add_tool_result(self._pending_call, text, 0.0)
            self._pending_call = None

    def _run_turn(self) -> str | None:
        """Request one reply and run its tool calls; return the rationale of a `test` call, None without one."""
        reply = self._request_reply()
        empty = not (reply.text or reply.tool_calls)  # some endpoints reject empty messages
        self._history.add(replace(reply.message, text=NO_ANSWER) if empty else reply.message)
        self._recorder.record_reply(reply)
        end, has_valid_call = self._run_calls(reply.tool_calls)
        left = self.guard.record_reply(is_valid=has_valid_call or end is not None)
        if end is not None and end.tool == GIVE_UP_TOOL:
            raise ConversationStoppedError(StopReason.GAVE_UP, end.rationale)
        if not reply.tool_calls:
            names = [tool.name for tool in self._tools]
            nudge = render_prompt("nudge", tools=names, left=left, cut=reply.finish_reason == FINISH_LENGTH)
            self._add_message(Message(role="user", text=nudge))
        return None if end is None else end.rationale

    def _request_reply(self) -> ModelReply:
        """Return the model's next reply, after shortening a conversation that is too long."""
        if self._history.shorten_to_limit():
            self._recorder.record_event("trimmed", "context", "")
        for _ in range(MAX_SHRINKS):
            sent = estimate_tokens(self._history.messages)
            failed = self.meter.failed_requests
            try:
                reply = self._model.complete(
                    self._history.messages,
                    self._tools,
                    meter=self.meter,
                    deadline=time.monotonic() + self._seconds_left(),
                )
            except ContextLengthError as error:
                if not self._history.shrink():
                    raise ConversationStoppedError(StopReason.CONTEXT, str(error)) from error
                self._recorder.record_event("trimmed", "endpoint", str(error))
                continue
            if self.meter.failed_requests > failed:
                self._recorder.record_event(
                    "failed", "requests", f"{self.meter.failed_requests - failed} requests failed"
                )
            self._history.calibrate(sent, reply.usage)
            return reply
        raise ConversationStoppedError(StopReason.CONTEXT, "the shortened conversation is still too long")

    def _run_calls(self, calls: Sequence[ToolCall]) -> tuple[EndTurn | None, bool]:
        """Run the calls; return (the end of the turn if a call is one, whether any call was valid)."""
        end: EndTurn | None = None
        has_valid_call = False
        for call in calls:
            if end is not None:
                self._add_tool_result(call, NOT_DONE.format(tool=end.tool), 0.0)
                continue
            started = time.monotonic()
            try:
                result = self._toolbox.run_call(call)
            except EndTurn as signal:
                end = signal
                self._pending_call = call
                continue
            has_valid_call = has_valid_call or result.is_valid
            remark = self.guard.record_call(call, result.text) if result.is_valid else ""
            self._add_tool_result(call, f"{result.text}\n{remark}".strip("\n"), time.monotonic() - started)
        return end, has_valid_call

    def _add_tool_result(self, call: ToolCall, text: str, seconds: float) -> None:
        """Add a tool's result; an empty one is replaced by a text, because some endpoints reject it."""
        text = text or "[nothing]"
        self._history.add(Message(role="tool", text=text, tool_call_id=call.id, tool_name=call.name))
        self._recorder.record_result(call, text, seconds)


def estimate_tool_tokens(toolbox: Toolbox) -> int:
    """Return the estimated number of tokens of the tools' descriptions."""
    return estimate_tokens(
        [Message(role="system", text=f"{tool.description}{tool.parameters}") for tool in toolbox.declare_tools()]
    )
