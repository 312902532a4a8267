"""The loop of a model with the two tools (ReAct, arXiv 2210.03629): it ends by an answer in the demanded form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import BaseModel

from backends.llm.base import ContextLengthError, Message, ModelReply
from backends.llm.meter import UsageMeter
from backends.llm.structured import UnusableAnswerError
from explorers.model_requests import ExplorerModels, RequestKey, read_answer, repeat_request
from explorers.walking.tools import TOOLS, CorpusTools, ToolStep

M = TypeVar("M", bound=BaseModel)
LAST_TURN = "No more calls are possible. Answer now, in the form that was asked for."
GO_ON = "That is too early: {calls} of at least {least} calls were made. Go on with the tools."
MAX_SENDS = 2
"""Times that a loop which ends too early is sent on."""


@dataclass(frozen=True, kw_only=True)
class LoopLimits:
    """Limits of a loop: calls of tools before its end, and turns (requests) with tools."""

    turns: int
    min_calls: int = 0


@dataclass(kw_only=True)
class LoopResult(Generic[M]):
    """Result of a loop. `value` is None without a usable answer, for `problem`; `turns` are requests."""

    value: M | None = None
    problem: str = ""
    turns: int = 0
    steps: list[ToolStep] = field(default_factory=list)

    @property
    def n_malformed(self) -> int:
        """Calls that were not well formed."""
        return sum(step.is_malformed for step in self.steps)

    @property
    def pages(self) -> tuple[str, ...]:
        """Ids of the pages that were opened, in the order of the first visits."""
        return tuple(dict.fromkeys(step.page for step in self.steps if step.page))


@dataclass(frozen=True, kw_only=True)
class ToolLoop(Generic[M]):
    """A loop with the two tools. `check` returns the problem with an answer, or an empty text; see LoopResult."""

    models: ExplorerModels
    model: str
    key: RequestKey
    tools: CorpusTools
    answer_type: type[M]
    limits: LoopLimits
    temperature: float | None = None

    def run(
        self,
        messages: Sequence[Message],
        meter: UsageMeter,
        check: Callable[[M, LoopResult[M]], str] = lambda _answer, _result: "",
    ) -> LoopResult[M]:
        """Return the result of the loop that begins with some messages.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        recorded = self.models.open(self.model, self.key, temperature=self.temperature)
        conversation, result = list(messages), LoopResult[M]()
        n_sent, n_unusable = 0, 0
        while n_unusable < self.models.attempts:
            is_last = result.turns >= self.limits.turns
            if is_last and conversation[-1].text != LAST_TURN and not n_unusable:
                conversation.append(Message(role="user", text=LAST_TURN))
            try:
                reply = recorded.complete(conversation, () if is_last else TOOLS, meter=meter)
            except ContextLengthError:
                result.problem = "the conversation exceeds the context length"
                return result
            result.turns += 1
            if reply.tool_calls and not is_last:
                conversation += self._call_tools(reply, result)
                continue
            if len(result.steps) < self.limits.min_calls and n_sent < MAX_SENDS and not is_last:
                n_sent += 1
                text = GO_ON.format(calls=len(result.steps), least=self.limits.min_calls)
                conversation += [reply.message, Message(role="user", text=text)]
                continue
            try:
                result.value = read_answer(reply, self.answer_type, lambda answer: check(answer, result))
            except UnusableAnswerError as error:
                n_unusable += 1
                result.problem = str(error)
                conversation += repeat_request(reply, result.problem)
            else:
                result.problem = ""
                return result
        return result

    def _call_tools(self, reply: ModelReply, result: LoopResult[M]) -> list[Message]:
        """Return a reply and the results of its calls as messages; the result gets the steps."""
        messages = [reply.message]
        for call in reply.tool_calls:
            step = self.tools.call(call)
            result.steps.append(step)
            messages.append(Message(role="tool", text=step.result, tool_call_id=call.id, tool_name=call.name))
        return messages
