"""State of a rollout at the gateway: its log, its usage, and which answers are there already.

Three kinds of answers cost nothing again. `unsent`: the client was lost before it had all of it. `replayable`: of an
earlier run, used in their order until a request differs. In doubt are requests that the upstream may have answered
without our knowing: they are sent again with the same Idempotency-Key.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from backends.llm.meter import TokenUsage
from samplers.gateway.access import GatewayUsage, RolloutAccess
from samplers.gateway.exchanges import LogContent
from samplers.gateway.failures import GatewayFailure, is_perhaps_paid
from samplers.gateway.json_text import Json
from samplers.gateway.log import ExchangeLog, format_now
from samplers.gateway.pending_answers import PendingAnswer
from samplers.gateway.rollout_meter import RolloutMeter


@dataclass(frozen=True, kw_only=True)
class RecordedAnswer:
    """An answer of the log, without the texts of its request."""

    number: int
    fingerprint: str
    response: Json
    usage: TokenUsage
    cost: float


@dataclass(frozen=True, kw_only=True)
class ExchangeStart:
    """Number and Idempotency-Key of an exchange, and whether its request offers tools."""

    number: int
    key: str
    offers_tools: bool = False


class RolloutState:
    """A rollout that is open. Not thread-safe: bound to an event loop.

    Args:
        name: name of the rollout.
        access: access of its agent.
        log: log of the rollout, which is closed with it.
        on_full_disk: function that is called when a line of the log cannot be written.
    """

    def __init__(
        self, name: str, access: RolloutAccess, log: ExchangeLog, on_full_disk: Callable[[], None] | None = None
    ) -> None:
        self.name = name
        self.access = access
        self.pending_answers: dict[str, PendingAnswer] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_closing = False
        self._log = log
        self._on_full_disk = on_full_disk
        self._unsent: dict[str, deque[RecordedAnswer]] = {}
        self._replayable: dict[str, deque[RecordedAnswer]] = {}
        self._doubtful: dict[str, ExchangeStart] = {}
        self._meter = RolloutMeter(access.budget)
        content = log.content
        # Numbers go on from the log, so that each names a single exchange of the rollout.
        self._next_number = max([*content.begins, *content.ends], default=-1) + 1
        is_new_run = not access.resume or content.last_run < 0
        self.run = content.last_run + is_new_run
        self._recall(content, is_new_run=is_new_run)
        # The content of the log holds every request, which need not stay in memory.
        log.content = LogContent()
        if is_new_run:
            self.append({"event": "run", "run": self.run, "at": format_now()})

    def _recall(self, content: LogContent, *, is_new_run: bool) -> None:
        """Read from the log the answers that need not be paid again."""
        own = set() if is_new_run else set(content.runs.get(self.run, ()))
        answers = {number: _recall_answer(content, number) for number in sorted(content.ends)}
        for number, answer in answers.items():
            if number in own:
                self._recount(answer, offers_tools=bool(content.begins.get(number, {}).get("tools")))
            if answer and number in own:
                if number not in content.sent:
                    self.keep_unsent(answer)
            elif answer and self.access.replay:
                self._replayable.setdefault(answer.fingerprint, deque()).append(answer)
            elif not answer and _is_perhaps_paid(content.ends[number]):
                begin = content.begins[number]
                self._doubtful[begin["fingerprint"]] = ExchangeStart(number=-1, key=begin["key"])
        for begin in content.find_doubtful():
            self._doubtful[begin["fingerprint"]] = ExchangeStart(number=begin["exchange"], key=begin["key"])
        earlier = {number for run, numbers in content.runs.items() if run < self.run for number in numbers}
        # This run had a request that differed, so later answers of the log do not belong to it.
        if own - earlier:
            self._replayable.clear()

    def _recount(self, answer: RecordedAnswer | None, *, offers_tools: bool) -> None:
        """Count an exchange of this run that an earlier process of the gateway had counted."""
        self._meter.count_request(offers_tools=offers_tools)
        if answer is None:
            self._meter.count_failure(offers_tools=offers_tools)
        else:
            self._meter.count_answer(answer.usage, answer.cost)

    def append(self, event: Json) -> None:
        """Write a line of the log.

        Raises:
            GatewayFailure: the disk is full or fails.
        """
        try:
            self._log.append(event)
        except GatewayFailure as failure:
            self.note_failure(failure)
            # The line of a later begin may fit where that of its end does not, so nothing more is sent and paid.
            self._meter.stop_for_disk()
            if self._on_full_disk:
                self._on_full_disk()
            raise

    def note_failure(self, failure: GatewayFailure) -> None:
        """Keep a failure for the driver; that of a full disk stays, with the reason of the system."""
        self._meter.note_failure(failure)

    def find_recorded(self, fingerprint: str, *, offers_tools: bool) -> RecordedAnswer | None:
        """Return the answer of the log to a request, and note that it is used; None where the upstream has to answer.

        Raises:
            GatewayFailure: the disk is full or fails.
        """
        for answers in (self._unsent, self._replayable):
            # Answers that no client has received come first: they belong to this run and are counted already.
            recorded = answers.get(fingerprint)
            if not recorded:
                continue
            # Written before the answer is used: after a crash it counts as used, and is never given twice.
            self.append({"event": "replay", "exchange": recorded[0].number, "run": self.run, "at": format_now()})
            answer = recorded.popleft()
            if answers is self._replayable:
                self._meter.count_request(offers_tools=offers_tools)
                self._meter.count_answer(answer.usage, answer.cost)
            self._meter.count_replay()
            self.keep_unsent(answer)
            return answer
        return None

    def begin_exchange(self, fingerprint: str, *, offers_tools: bool) -> ExchangeStart:
        """Write that a request is sent upstream; return its number and key.

        Raises:
            GatewayFailure: the disk is full or fails, or a budget is used up.
        """
        # Only requests that offer tools are turns: the titles and summaries that agents request do not count.
        self._meter.check_budget(offers_tools=offers_tools)
        doubtful = self._doubtful.get(fingerprint)
        # The run differs from the recorded one from here on, so later answers of the log do not belong to it.
        if doubtful is None:
            self._replayable.clear()
        number = doubtful.number if doubtful and doubtful.number >= 0 else self._next_number
        # With the key of the first attempt, an upstream that keeps answers does not charge for it again.
        key = doubtful.key if doubtful else str(uuid.uuid4())
        names = {"exchange": number, "key": key, "fingerprint": fingerprint, "run": self.run, "tools": offers_tools}
        self.append({"event": "begin", **names, "at": format_now()})
        # Only now is the new attempt in the log.
        self._doubtful.pop(fingerprint, None)
        self._next_number = max(self._next_number, number + 1)
        self._meter.count_request(offers_tools=offers_tools)
        return ExchangeStart(number=number, key=key, offers_tools=offers_tools)

    def end_exchange(
        self, event: Json, fingerprint: str, usage: TokenUsage, failure: GatewayFailure | None, *, offers_tools: bool
    ) -> None:
        """Write the end of an exchange and count it.

        Raises:
            GatewayFailure: the disk is full or fails.
        """
        try:
            self.append(event)
        except GatewayFailure:
            # The answer is paid for but is not in the log, so another attempt has the same number and key.
            self._doubtful[fingerprint] = ExchangeStart(number=event["exchange"], key=event["key"])
            raise
        self._meter.count_answer(usage, event["cost"])
        if failure is None:
            self.keep_unsent(
                RecordedAnswer(
                    number=event["exchange"],
                    fingerprint=fingerprint,
                    response=event["response"],
                    usage=usage,
                    cost=event["cost"],
                )
            )
            return
        self._meter.count_failure(offers_tools=offers_tools)
        self.note_failure(failure)
        if _is_perhaps_paid(event):
            self._doubtful[fingerprint] = ExchangeStart(number=-1, key=event["key"])

    def keep_unsent(self, answer: RecordedAnswer) -> None:
        """Keep an answer until a client has all of it."""
        self._unsent.setdefault(answer.fingerprint, deque()).append(answer)

    def mark_sent(self, fingerprint: str, number: int) -> None:
        """Write that a client has all of an answer, unless the rollout was closed in the meantime."""
        # The descriptor of a closed log may be that of another log now.
        if self._log.is_closed:
            return
        waiting = self._unsent.get(fingerprint, deque())
        left = [answer for answer in waiting if answer.number != number]
        if len(left) == len(waiting):
            return
        if left:
            self._unsent[fingerprint] = deque(left)
        else:
            del self._unsent[fingerprint]
        try:
            self.append({"event": "sent", "exchange": number})
        except GatewayFailure:
            # The usage shows the failure, and the next request fails.
            return

    def join_answer(self, pending: PendingAnswer) -> None:
        """Write that a request is answered with another one's answer.

        Raises:
            GatewayFailure: the disk is full or fails.
        """
        self.append({"event": "replay", "exchange": pending.number, "run": self.run, "at": format_now()})
        self._meter.count_replay()

    def get_usage(self) -> GatewayUsage:
        """Return the amounts that the current run has used."""
        return self._meter.get_usage(len(self.tasks))

    async def close(self) -> GatewayUsage:
        """Wait for calls in flight, close the log and return the usage."""
        self.is_closing = True
        # A call that was sent is paid for, so its answer is still recorded.
        while self.tasks:
            await asyncio.wait(self.tasks)
        self._log.close()
        return self.get_usage()


def _is_perhaps_paid(end: Json) -> bool:
    """Return whether the upstream may have answered an exchange that ended without an answer."""
    error = end.get("error")
    return error is not None and is_perhaps_paid(error["kind"], end["attempts"])


def _recall_answer(content: LogContent, number: int) -> RecordedAnswer | None:
    """Return the answer of an ended exchange; None where it has none."""
    end = content.ends[number]
    begin = content.begins.get(number)
    if end.get("response") is None or end.get("error") or begin is None:
        return None
    usage = TokenUsage(
        prompt_tokens=end["prompt_tokens"],
        completion_tokens=end["completion_tokens"],
        cached_tokens=end["cached_tokens"],
    )
    fingerprint = begin["fingerprint"]
    return RecordedAnswer(
        number=number, fingerprint=fingerprint, response=end["response"], usage=usage, cost=end["cost"]
    )
