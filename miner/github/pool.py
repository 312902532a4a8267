"""Pool of the tokens of a run, each with its own budget, leased for a request at a time.

Threads share a pool. The token with the largest remaining budget is used first; when all are exhausted, the caller
waits for the first reset, for at most `github_patience`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from core.errors import CancelledRunError, InputError, Transient
from miner.github.auth import TOKEN_ADVICE, Credential
from miner.github.budget import MAX_ANSWER_SECONDS, Resource, TokenSlot
from miner.github.responses import GitHubResponse, RateLimitHit, RateLimitState, parse_cost, parse_rate_limit

log = logging.getLogger(__name__)

MIN_REPORTED_WAIT = 5.0
"""Seconds; a shorter wait is not reported."""
POLL_SECONDS = 1.0
"""Seconds after which a thread that waits for another thread's request checks again."""
MAX_CLOCK_SKEW = 2.0
"""Seconds by which GitHub's clock and the local may differ and count as equal."""


class SystemClock:
    """The time, and waiting; tests pass a clock that does not wait."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        """Wait for so many seconds, or until notified."""
        changed.wait(seconds)


@dataclass
class Lease:
    """Permission for a request."""

    slot: TokenSlot
    resource: Resource
    started: float
    reserved: int
    reply: GitHubResponse | None = None
    """The response; set by the caller."""
    limit: RateLimitHit | None = None
    rejected_reason: str | None = None
    """Why GitHub does not accept the token."""


class TokenPool:
    """All tokens. Thread-safe."""

    def __init__(
        self, credentials: Sequence[Credential], *, concurrency: int, clock: SystemClock | None = None
    ) -> None:
        self.slots = [TokenSlot(credential, concurrency) for credential in credentials]
        self.clock = clock or SystemClock()
        self.waited = 0.0
        """Seconds that threads have waited for a limit or the pace, in total."""
        self._changed = threading.Condition()
        self._ahead = 0.0
        self._told_until = 0.0
        self._stopped = False

    @contextmanager
    def lease(self, resource: Resource, deadline: float) -> Iterator[Lease]:
        """Wait for a lease for a request. On exit, the response noted in the lease is charged to its token.

        Raises:
            InputError: GitHub accepts none of the tokens any more.
            Transient: the wait would last beyond `deadline`.
            CancelledRunError: `stop` was called.
        """
        lease = self._acquire(resource, deadline)
        try:
            yield lease
        finally:
            self._release(lease)

    def pause(self, seconds: float) -> None:
        """Sleep until `stop` at most."""
        with self._changed:
            until = self.clock.now() + seconds
            while (now := self.clock.now()) < until:
                self._check_stopped()
                self.clock.wait(self._changed, until - now)

    def stop(self) -> None:
        """End all waiting, now and from now on."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def summarize_usage(self) -> dict[str, Any]:
        """Return the requests as JSON data: in total, and for each token by its position."""
        with self._changed:
            tokens = [
                {"token": slot.credential.label, **asdict(slot.usage), "retired": slot.retired_reason}
                for slot in self.slots
            ]
            return {
                "requests": sum(slot.usage.requests for slot in self.slots),
                "points": sum(slot.usage.points for slot in self.slots),
                "waited_seconds": round(self.waited, 1),
                "tokens": tokens,
            }

    def _acquire(self, resource: Resource, deadline: float) -> Lease:
        with self._changed:
            while True:
                self._check_stopped()
                now = self.clock.now()
                if slot := self._select_slot(resource, now):
                    return Lease(slot, resource, now, slot.begin_request(resource, now))
                self._wait(resource, now, deadline)

    def _select_slot(self, resource: Resource, now: float) -> TokenSlot | None:
        """Return the token with the largest remaining budget that is ready now."""
        ready = [
            slot
            for slot in self._require_accepted_token()
            if slot.active_requests < slot.concurrency and slot.ready_at(resource, now)[0] <= now
        ]

        def most_left(slot: TokenSlot) -> tuple[float, int]:
            left = slot.hourly_budgets[resource].estimate_left(now)
            # A token that was not used yet has an unknown budget, which is mostly the whole one.
            return (float("inf") if left is None else left, -slot.active_requests)

        return max(ready, key=most_left, default=None)

    def _wait(self, resource: Resource, now: float, deadline: float) -> None:
        # The first token that becomes free ends the wait of all.
        until, why = min(slot.ready_at(resource, now) for slot in self._require_accepted_token())
        if until > deadline:
            raise Transient(
                f"GitHub's limits allow the next request at {_format_time(until)}, after the longest allowed wait",
                advice="run the same command again then, add a token, or raise --github-patience",
            )
        # Threads wait for the same reset; one message is enough.
        if until > now and until > self._told_until + 1 and until - now >= MIN_REPORTED_WAIT:
            self._told_until = until
            level = logging.WARNING if why == "limit" else logging.INFO
            log.log(level, "GitHub's limit is reached: continuing at %s, in %.0f s", _format_time(until), until - now)
        if until > now:
            self.clock.wait(self._changed, until - now)
            self.waited += self.clock.now() - now
        else:
            # A token is ready, but all its requests are in use: the end of any of them is notified.
            self._changed.wait(POLL_SECONDS)

    def _require_accepted_token(self) -> list[TokenSlot]:
        slots = [slot for slot in self.slots if not slot.retired_reason]
        if not slots:
            why = "; ".join(f"{slot.credential.label}: {slot.retired_reason}" for slot in self.slots)
            raise InputError(f"GitHub does not accept {why}", advice=TOKEN_ADVICE)
        return slots

    def _release(self, lease: Lease) -> None:
        with self._changed:
            now, slot, reply = self.clock.now(), lease.slot, lease.reply
            state = self._adjust_to_local_clock(reply, lease.started, now) if reply else None
            cost = parse_cost(reply) if reply else 1
            slot.finish_request(lease.resource, lease.reserved, lease.started, now, cost=cost, state=state)
            if lease.limit:
                slot.pause_after_limit(lease.limit, lease.resource, lease.started, now, state)
            elif lease.rejected_reason:
                self._retire(slot, lease.rejected_reason)
            # A response to a request from before the pause does not show that the limit has ended.
            elif reply and lease.started >= slot.paused_at:
                slot.strikes = 0
            self._changed.notify_all()

    def _retire(self, slot: TokenSlot, why: str) -> None:
        # Without another token, the next request raises an error that names the reason.
        others = sum(not other.retired_reason for other in self.slots) - 1
        if not slot.retired_reason and others > 0:
            log.warning("GitHub does not accept %s: %s; continuing with the others", slot.credential.label, why)
        slot.retired_reason = why

    def _adjust_to_local_clock(self, reply: GitHubResponse, started: float, now: float) -> RateLimitState | None:
        """Parse the budget of a response; correct its reset where GitHub's clock differs from the local."""
        state, sent = parse_rate_limit(reply), reply.sent_at
        # If the clocks agree, the response was sent between the request and now.
        if sent is not None:
            behind, ahead = sent < started - MAX_CLOCK_SKEW, sent > now + MAX_CLOCK_SKEW
            # The machine may have been suspended in between.
            until = min(now, started + MAX_ANSWER_SECONDS)
            self._ahead = sent - until if behind else sent - now if ahead else 0.0
        return RateLimitState(state.limit, state.remaining, state.reset - self._ahead) if state else None

    def _check_stopped(self) -> None:
        if self._stopped:
            raise CancelledRunError("stopped during a request to GitHub")


def _format_time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%H:%M:%S UTC")
