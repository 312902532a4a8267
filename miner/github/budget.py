"""Budget of a token by GitHub's rules. No network, no threads; every time is a parameter.

GitHub's rules ("Rate limits for the REST API", "Rate limits and query limits for the GraphQL API"): an hourly budget of
GraphQL points and a budget of REST requests; requests a minute; seconds of GitHub's processors a minute, roughly the
duration of its answers; concurrent requests. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from miner.github.auth import Credential
from miner.github.responses import RateLimitHit, RateLimitState


class Resource(StrEnum):
    """Resources with separate budgets, by GitHub's names."""

    GRAPHQL = "graphql"
    REST = "core"


MINUTE = 60.0
REQUESTS_PER_MINUTE = {Resource.GRAPHQL: 2000, Resource.REST: 900}
"""Queries and GETs count as one each, unlike a query's points of the hourly budget."""
GRAPHQL_CPU, CPU = 60.0, 90.0
"""Seconds of answer time a minute: of GraphQL, and of both."""
MAX_ANSWER_SECONDS = 10.0
"""Seconds after which GitHub aborts a request; longer requests are due to the network."""
FIRST_PAUSE = 60.0
"""Seconds to wait after a secondary limit without a given time; doubled each time it recurs."""
MAX_PAUSE = 3600.0
RETRY_MARGIN = 1.0
"""Seconds to wait after a reset: GitHub reports whole seconds."""
RESET_TOLERANCE = 30.0
"""Seconds by which the reset time of an hour may vary between answers."""


class RateWindow:
    """Amounts of the last minute, whose sum stays below a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._entries: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def add(self, now: float, amount: float) -> None:
        """Add an amount."""
        self._entries.append((now, amount))
        self._sum += amount

    def ready_at(self, now: float) -> float:
        """Return the time from which there is room; `now` or earlier when there is some."""
        while self._entries and self._entries[0][0] <= now - MINUTE:
            self._sum -= self._entries.popleft()[1]
        over = self._sum - self.limit
        if over < 0 or not self._entries:
            return now
        for when, amount in self._entries:
            over -= amount
            if over < 0:
                return when + MINUTE
        return self._entries[-1][0] + MINUTE


@dataclass
class HourlyBudget:
    """Hourly budget of a resource: the last reported remainder, less the requests since."""

    limit: int | None = None
    remaining: int | None = None
    """Last reported remainder; None before the first answer."""
    reset: float = 0.0
    """By the local clock."""
    expected: int = 1
    """Cost of the most expensive request so far: the next may cost as much."""
    reserved: int = 0

    def estimate_left(self, now: float) -> int | None:
        """Return points or requests left; None when unknown."""
        if self.remaining is None or now >= self.reset + RETRY_MARGIN:
            return self.limit - self.reserved if self.limit is not None else None
        return self.remaining - self.reserved

    def ready_at(self, now: float) -> float:
        """Return the time from which there is enough for a request."""
        left = self.estimate_left(now)
        return (
            now
            if left is None or left >= self.expected or now >= self.reset + RETRY_MARGIN
            else self.reset + RETRY_MARGIN
        )

    def reserve(self, now: float) -> int:
        """Reserve the points that a request may cost; release it with `settle`."""
        if self.remaining is not None and now >= self.reset + RETRY_MARGIN:
            self.remaining = None
        self.reserved += self.expected
        return self.expected

    def settle(self, reserved: int, cost: int, state: RateLimitState | None) -> None:
        """Account for a finished request. `state`: budget in its answer, by the local clock; None without an answer."""
        self.reserved -= reserved
        self.expected = max(self.expected, cost)
        if state is None:
            self.remaining = None if self.remaining is None else max(0, self.remaining - reserved)
        elif self.remaining is None or state.reset > self.reset + RESET_TOLERANCE:
            self.limit, self.remaining, self.reset = state.limit, state.remaining, state.reset
        elif state.reset >= self.reset - RESET_TOLERANCE:
            # Answers may arrive out of order: the lowest number is the latest.
            self.remaining = min(self.remaining, state.remaining)

    def exhaust(self, state: RateLimitState) -> None:
        """Set the remainder to zero until the reset."""
        self.limit, self.remaining, self.reset = state.limit, 0, state.reset


@dataclass
class CredentialUsage:
    """Use of a token."""

    requests: int = 0
    graphql: int = 0
    points: int = 0
    unchanged: int = 0
    """Responses with status 304, which are free."""
    limits: int = 0
    """Responses that reported a limit."""


@dataclass
class TokenSlot:
    """A credential and its limits."""

    credential: Credential
    concurrency: int
    hourly_budgets: dict[Resource, HourlyBudget] = field(
        default_factory=lambda: {resource: HourlyBudget() for resource in Resource}
    )
    minute_windows: dict[Resource, RateWindow] = field(
        default_factory=lambda: {resource: RateWindow(limit) for resource, limit in REQUESTS_PER_MINUTE.items()}
    )
    graphql_cpu: RateWindow = field(default_factory=lambda: RateWindow(GRAPHQL_CPU))
    cpu: RateWindow = field(default_factory=lambda: RateWindow(CPU))
    active_requests: int = 0
    paused_until: float = 0.0
    paused_at: float = 0.0
    strikes: int = 0
    retired_reason: str = ""
    """Why GitHub does not accept it any more."""
    usage: CredentialUsage = field(default_factory=CredentialUsage)

    def ready_at(self, resource: Resource, now: float) -> tuple[float, str]:
        """Return the time from which the next request may be sent, and its cause of delay.

        "limit", "pace" or "".
        """
        limit = max(self.paused_until, self.hourly_budgets[resource].ready_at(now))
        pace = max(self.minute_windows[resource].ready_at(now), self.cpu.ready_at(now))
        if resource is Resource.GRAPHQL:
            pace = max(pace, self.graphql_cpu.ready_at(now))
        if max(limit, pace) <= now:
            return now, ""
        return (limit, "limit") if limit >= pace else (pace, "pace")

    def begin_request(self, resource: Resource, now: float) -> int:
        """Start a request; return the part that is reserved of the hourly budget for it."""
        self.active_requests += 1
        self.minute_windows[resource].add(now, 1)
        self.usage.requests += 1
        self.usage.graphql += resource is Resource.GRAPHQL
        return self.hourly_budgets[resource].reserve(now)

    def finish_request(
        self, resource: Resource, reserved: int, started: float, now: float, *, cost: int, state: RateLimitState | None
    ) -> None:
        """Finish a request, with or without a response."""
        self.active_requests -= 1
        self.usage.points += cost if resource is Resource.GRAPHQL else 0
        self.usage.unchanged += cost == 0 and resource is Resource.REST
        busy = min(now - started, MAX_ANSWER_SECONDS)
        self.cpu.add(now, busy)
        if resource is Resource.GRAPHQL:
            self.graphql_cpu.add(now, busy)
        self.hourly_budgets[resource].settle(reserved, cost, state)

    def pause_after_limit(
        self, limit: RateLimitHit, resource: Resource, started: float, now: float, state: RateLimitState | None
    ) -> None:
        """Pause for Retry-After; else until the reset when nothing is left; else a minute, doubled each time."""
        self.usage.limits += 1
        if limit.retry_after is not None:
            until = now + max(limit.retry_after, RETRY_MARGIN)
        elif limit.is_exhausted and state is not None and state.reset > now:
            self.hourly_budgets[resource].exhaust(state)
            return
        else:
            # Concurrent requests that meet one limit count as one violation.
            self.strikes += started >= self.paused_at
            until = now + min(FIRST_PAUSE * 2 ** (max(self.strikes, 1) - 1), MAX_PAUSE)
        self.paused_at = now
        self.paused_until = max(self.paused_until, until)
