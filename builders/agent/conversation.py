"""A conversation, round by round: what the model asks for is done, until it wants the plan tested or it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from backends.llm.answers import LENGTH
from backends.llm.base import ContextFullError, Message, Model, Reply, ToolCall, estimate
from backends.llm.meter import BudgetSpentError, Meter
from builders.agent.guards import Guard, Stop, StoppedError
from builders.agent.history import History
from builders.agent.prompting import prompt, prompts_hash
from builders.agent.tools import Toolbox, TurnOver
from builders.agent.transcript import Recorder, Transcript

TEST = "test"
GIVE_UP = "give_up"
SHRINKS = 4
"""How often a conversation that the endpoint finds too long is cut before it is given up."""
NO_ANSWER = "[no answer]"
NOT_DONE = "Not done: `{tool}` ended your turn."


class Conversation:
    """One model at work on one build.

    Args:
        model: who is asked.
        toolbox: what it can do.
        system: the instructions.
        meter: counts tokens and money, and ends it.
        left: seconds that are left of the time.
        answer_tokens: room to leave for an answer.
    """

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        system: str,
        *,
        meter: Meter,
        left: Callable[[], float],
        answer_tokens: int,
    ) -> None:
        self.meter = meter
        self.guard = Guard()
        self._model = model
        self._toolbox = toolbox
        self._tools = toolbox.declared()
        self._left = left
        room = model.context_tokens - answer_tokens - estimate_tools(toolbox)
        self._history = History(max(room, model.context_tokens // 4))
        self._recorder = Recorder(model.name, prompts_hash())
        self._waiting: ToolCall | None = None
        self._tell(Message(role="system", text=system))

    def round(self, told: str) -> str:
        """Tell the model something, and let it work until it wants the plan tested; why it does.

        `told`: the task, or after a test its result.

        Raises:
            StoppedError: there will be no other test.
            Transient, InputError, Stopped: endpoint or engine failed, the endpoint refuses, or the user ended it.
        """
        try:
            self._answer(told)
            while (why := self._turn()) is None:
                pass
        except BudgetSpentError as error:
            self._recorder.note("ended", Stop.BUDGET, str(error))
            raise StoppedError(Stop.BUDGET, str(error)) from error
        except StoppedError as error:
            self._recorder.note("ended", error.stop, error.detail)
            raise
        self._recorder.note("ended", TEST, why)
        return why

    def transcript(self) -> Transcript:
        """All that was said so far."""
        return self._recorder.transcript(self.meter)

    def _tell(self, message: Message) -> None:
        self._history.add(message)
        self._recorder.told(message)

    def _answer(self, told: str) -> None:
        """What is told is the result of the test that was asked for, else a message of its own."""
        if self._waiting is None:
            self._tell(Message(role="user", text=told))
        else:
            self._give(self._waiting, told, 0.0)
            self._waiting = None

    def _turn(self) -> str | None:
        """One reply, and what it asks for; why it asks for a test, None when it does not."""
        reply = self._ask()
        empty = not (reply.text or reply.tool_calls)  # which some endpoints do not take back
        self._history.add(replace(reply.message, text=NO_ANSWER) if empty else reply.message)
        self._recorder.said(reply)
        over, sense = self._do(reply.tool_calls)
        left = self.guard.replied(sense=sense or over is not None)
        if over is not None and over.tool == GIVE_UP:
            raise StoppedError(Stop.GAVE_UP, over.why)
        if not reply.tool_calls:
            names = [tool.name for tool in self._tools]
            told = prompt("nudge", tools=names, left=left, cut=reply.finish == LENGTH)
            self._tell(Message(role="user", text=told))
        return None if over is None else over.why

    def _ask(self) -> Reply:
        """The model's next reply, the conversation cut where it is too long."""
        if self._history.fit():
            self._recorder.note("trimmed", "context", "")
        for _ in range(SHRINKS):
            sent = estimate(self._history.messages)
            failed = self.meter.failed
            try:
                reply = self._model.complete(
                    self._history.messages, self._tools, meter=self.meter, deadline=time.monotonic() + self._left()
                )
            except ContextFullError as error:
                if not self._history.shrink():
                    raise StoppedError(Stop.CONTEXT, str(error)) from error
                self._recorder.note("trimmed", "endpoint", str(error))
                continue
            if self.meter.failed > failed:
                self._recorder.note("failed", "requests", f"{self.meter.failed - failed} requests failed")
            self._history.learn(sent, reply.usage)
            return reply
        raise StoppedError(Stop.CONTEXT, "the conversation stays too long however it is cut")

    def _do(self, calls: Sequence[ToolCall]) -> tuple[TurnOver | None, bool]:
        """(the end of the turn if a call is one, whether any call made sense)."""
        over: TurnOver | None = None
        sense = False
        for call in calls:
            if over is not None:
                self._give(call, NOT_DONE.format(tool=over.tool), 0.0)
                continue
            started = time.monotonic()
            try:
                used = self._toolbox.use(call)
            except TurnOver as end:
                over = end
                self._waiting = call
                continue
            sense = sense or used.understood
            remark = self.guard.called(call, used.text) if used.understood else ""
            self._give(call, f"{used.text}\n{remark}".strip("\n"), time.monotonic() - started)
        return over, sense

    def _give(self, call: ToolCall, text: str, seconds: float) -> None:
        """A result for the model. An empty one is said to be so: some endpoints refuse it."""
        text = text or "[nothing]"
        self._history.add(Message(role="tool", text=text, call_id=call.id, tool=call.name))
        self._recorder.result(call, text, seconds)


def estimate_tools(toolbox: Toolbox) -> int:
    """About how many tokens the description of the tools costs."""
    return estimate(
        [Message(role="system", text=f"{tool.description}{tool.parameters}") for tool in toolbox.declared()]
    )
