"""Who may ask GitHub next, and when: the tokens of a run, each with its own budget, handed out one request at a time.

Threads share one pool. The token with most left goes first; when all are spent, the caller waits for the first that
is not, as long as its patience allows.
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

from mergemill.errors import InputError, Stopped, Transient
from miner.github.auth import HOW, Credential
from miner.github.budget import LONGEST_ANSWER, Resource, Seat
from miner.github.replies import Limit, Reply, Told, cost_of, told_of

log = logging.getLogger(__name__)

WORTH_TELLING = 5.0
"""Seconds: a shorter wait is nobody's concern."""
GLANCE = 1.0
"""Seconds after which a thread that waits for another's request to end looks again."""
SKEW = 2.0
"""Seconds by which GitHub's clock and ours may differ and be taken for the same."""


class Clock:
    """The time, and waiting. A test hands in one that needs none."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        """Wait so long, or less when something has changed."""
        changed.wait(seconds)


@dataclass
class Lease:
    """The right to one request."""

    seat: Seat
    resource: Resource
    started: float
    reserved: int
    reply: Reply | None = None
    """What was answered; set by who asks."""
    limit: Limit | None = None
    refused: str | None = None
    """Why GitHub does not accept the token."""


class Pool:
    """All tokens. Thread-safe."""

    def __init__(self, credentials: Sequence[Credential], *, concurrency: int, clock: Clock | None = None) -> None:
        self.seats = [Seat(credential, concurrency) for credential in credentials]
        self.clock = clock or Clock()
        self.waited = 0.0
        """Seconds that threads waited for a limit or the pace, summed."""
        self._changed = threading.Condition()
        self._ahead = 0.0
        self._told_until = 0.0
        self._stopped = False

    @contextmanager
    def lease(self, resource: Resource, deadline: float) -> Iterator[Lease]:
        """One request's right, waited for. On leaving, what is noted in the lease is counted for its token.

        Raises:
            InputError: GitHub accepts none of the tokens any more.
            Transient: the wait would last beyond `deadline`.
            Stopped: somebody called `stop`.
        """
        lease = self._take(resource, deadline)
        try:
            yield lease
        finally:
            self._end(lease)

    def pause(self, seconds: float) -> None:
        """Sleep, but not beyond `stop`."""
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

    def usage(self) -> dict[str, Any]:
        """What was asked, as JSON: in all, and for each token by its place."""
        with self._changed:
            tokens = [
                {"token": seat.credential.label, **asdict(seat.counts), "retired": seat.retired} for seat in self.seats
            ]
            return {
                "requests": sum(seat.counts.requests for seat in self.seats),
                "points": sum(seat.counts.points for seat in self.seats),
                "waited_seconds": round(self.waited, 1),
                "tokens": tokens,
            }

    def _take(self, resource: Resource, deadline: float) -> Lease:
        with self._changed:
            while True:
                self._check_stopped()
                now = self.clock.now()
                if seat := self._free(resource, now):
                    return Lease(seat, resource, now, seat.take(resource, now))
                self._wait(resource, now, deadline)

    def _free(self, resource: Resource, now: float) -> Seat | None:
        """The token with most left that may ask now."""
        ready = [
            seat
            for seat in self._accepted()
            if seat.under_way < seat.concurrency and seat.ready_at(resource, now)[0] <= now
        ]

        def most_left(seat: Seat) -> tuple[float, int]:
            left = seat.hours[resource].left(now)
            return (float("inf") if left is None else left, -seat.under_way)

        return max(ready, key=most_left, default=None)

    def _wait(self, resource: Resource, now: float, deadline: float) -> None:
        until, why = min(seat.ready_at(resource, now) for seat in self._accepted())
        if until > deadline:
            raise Transient(
                f"GitHub's limits allow the next request at {_clock_time(until)}, and that is too long to wait",
                advice="run the same command again then, add a token, or raise --github-patience",
            )
        if until > now and until > self._told_until + 1 and until - now >= WORTH_TELLING:
            self._told_until = until
            level = logging.WARNING if why == "limit" else logging.INFO
            log.log(level, "GitHub's limit is reached: going on at %s, in %.0f s", _clock_time(until), until - now)
        if until > now:
            self.clock.wait(self._changed, until - now)
            self.waited += self.clock.now() - now
        else:  # for a request under way to end
            self._changed.wait(GLANCE)

    def _accepted(self) -> list[Seat]:
        found = [seat for seat in self.seats if not seat.retired]
        if not found:
            why = "; ".join(f"{seat.credential.label}: {seat.retired}" for seat in self.seats)
            raise InputError(f"GitHub does not accept {why}", advice=HOW)
        return found

    def _end(self, lease: Lease) -> None:
        with self._changed:
            now, seat, reply = self.clock.now(), lease.seat, lease.reply
            told = self._by_our_clock(reply, lease.started, now) if reply else None
            cost = cost_of(reply) if reply else 1
            seat.end(lease.resource, lease.reserved, lease.started, now, cost=cost, told=told)
            if lease.limit:
                seat.rest(lease.limit, lease.resource, lease.started, now, told)
            elif lease.refused:
                self._retire(seat, lease.refused)
            elif reply and lease.started >= seat.rested_at:
                seat.strikes = 0
            self._changed.notify_all()

    def _retire(self, seat: Seat, why: str) -> None:
        others = sum(not other.retired for other in self.seats) - 1
        if not seat.retired and others > 0:
            log.warning("GitHub does not accept %s: %s; going on with the others", seat.credential.label, why)
        seat.retired = why

    def _by_our_clock(self, reply: Reply, started: float, now: float) -> Told | None:
        """What an answer says of the budget; where GitHub's clock is not ours, its reset is put right."""
        told, sent = told_of(reply), reply.sent_at
        if sent is not None:  # if the clocks agree it was sent between the request and now
            behind, ahead = sent < started - SKEW, sent > now + SKEW
            until = min(now, started + LONGEST_ANSWER)  # but a machine may have slept in between
            self._ahead = sent - until if behind else sent - now if ahead else 0.0
        return Told(told.limit, told.remaining, told.reset - self._ahead) if told else None

    def _check_stopped(self) -> None:
        if self._stopped:
            raise Stopped("stopped while GitHub was asked")


def _clock_time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%H:%M:%S UTC")
