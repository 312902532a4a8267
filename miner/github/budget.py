"""What one token may still ask, by GitHub's rules, as numbers. No network, no threads; every time is handed in.

GitHub's rules ("Rate limits for the REST API", "Rate limits and query limits for the GraphQL API"):
a budget an hour for GraphQL's points and one for REST's requests; so many requests a minute; so many seconds of
GitHub's processors a minute, roughly the time its answers took; so many requests at once. Times are seconds since the
epoch.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from miner.github.auth import Credential
from miner.github.replies import Limit, Told


class Resource(StrEnum):
    """What GitHub keeps separate budgets for, by its own names."""

    GRAPHQL = "graphql"
    REST = "core"


MINUTE = 60.0
REQUESTS_A_MINUTE = {Resource.GRAPHQL: 2000, Resource.REST: 900}
"""Queries and GETs count one each; a query's points of the hour's budget are something else."""
GRAPHQL_CPU, CPU = 60.0, 90.0
"""Seconds of answering a minute: of GraphQL, and of both."""
LONGEST_ANSWER = 10.0
"""Seconds after which GitHub gives up on a request; what lasts longer was the network."""
FIRST_REST = 60.0
"""Seconds to rest after a secondary limit that names no time; doubled each time it comes again."""
LONGEST_REST = 3600.0
MARGIN = 1.0
"""Seconds after a reset: GitHub tells whole ones."""
SAME_RESET = 30.0
"""Seconds by which two answers of the same hour may tell its end differently."""


class Window:
    """Amounts of the last minute, which together stay below a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._entries: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def add(self, now: float, amount: float) -> None:
        """Count an amount."""
        self._entries.append((now, amount))
        self._sum += amount

    def ready_at(self, now: float) -> float:
        """From when on there is room again; `now` or earlier when there is some."""
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
class Hour:
    """The hour's budget of one resource. What GitHub said last is less what was asked since."""

    limit: int | None = None
    told: int | None = None
    """Remaining, as GitHub said; None before its first word."""
    reset: float = 0.0
    """By our clock."""
    expected: int = 1
    """The dearest request seen: the next may cost as much."""
    under_way: int = 0

    def left(self, now: float) -> int | None:
        """Points or requests left; None when unknown."""
        if self.told is None or now >= self.reset + MARGIN:
            return self.limit - self.under_way if self.limit is not None else None
        return self.told - self.under_way

    def ready_at(self, now: float) -> float:
        """From when on there is enough for a request."""
        left = self.left(now)
        return now if left is None or left >= self.expected or now >= self.reset + MARGIN else self.reset + MARGIN

    def take(self, now: float) -> int:
        """Set aside what a request may cost; give this back with `settle`."""
        if self.told is not None and now >= self.reset + MARGIN:
            self.told = None
        self.under_way += self.expected
        return self.expected

    def settle(self, reserved: int, cost: int, told: Told | None) -> None:
        """A request has ended. `told`: what its answer says, its reset by our clock; None when there was no answer."""
        self.under_way -= reserved
        self.expected = max(self.expected, cost)
        if told is None:
            self.told = None if self.told is None else max(0, self.told - reserved)
        elif self.told is None or told.reset > self.reset + SAME_RESET:
            self.limit, self.told, self.reset = told.limit, told.remaining, told.reset
        elif told.reset >= self.reset - SAME_RESET:  # answers may come out of order: the lowest is the last
            self.told = min(self.told, told.remaining)

    def close(self, told: Told) -> None:
        """Nothing is left until the reset, whatever was believed before."""
        self.limit, self.told, self.reset = told.limit, 0, told.reset


@dataclass
class Counts:
    """What a token was used for."""

    requests: int = 0
    graphql: int = 0
    points: int = 0
    unchanged: int = 0
    """Answers 304, which cost nothing."""
    limits: int = 0
    """How often an answer said to wait."""


@dataclass
class Seat:
    """One credential and all that limits it."""

    credential: Credential
    concurrency: int
    hours: dict[Resource, Hour] = field(default_factory=lambda: {resource: Hour() for resource in Resource})
    minutes: dict[Resource, Window] = field(
        default_factory=lambda: {resource: Window(limit) for resource, limit in REQUESTS_A_MINUTE.items()}
    )
    graphql_cpu: Window = field(default_factory=lambda: Window(GRAPHQL_CPU))
    cpu: Window = field(default_factory=lambda: Window(CPU))
    under_way: int = 0
    rest_until: float = 0.0
    rested_at: float = 0.0
    strikes: int = 0
    retired: str = ""
    """Why GitHub does not accept it any more."""
    counts: Counts = field(default_factory=Counts)

    def ready_at(self, resource: Resource, now: float) -> tuple[float, str]:
        """From when on the next request may go, and what it waits for: "limit", "pace" or ""."""
        limit = max(self.rest_until, self.hours[resource].ready_at(now))
        pace = max(self.minutes[resource].ready_at(now), self.cpu.ready_at(now))
        if resource is Resource.GRAPHQL:
            pace = max(pace, self.graphql_cpu.ready_at(now))
        if max(limit, pace) <= now:
            return now, ""
        return (limit, "limit") if limit >= pace else (pace, "pace")

    def take(self, resource: Resource, now: float) -> int:
        """A request begins; what of the hour's budget is set aside for it."""
        self.under_way += 1
        self.minutes[resource].add(now, 1)
        self.counts.requests += 1
        self.counts.graphql += resource is Resource.GRAPHQL
        return self.hours[resource].take(now)

    def end(
        self, resource: Resource, reserved: int, started: float, now: float, *, cost: int, told: Told | None
    ) -> None:
        """A request has ended, answered or not."""
        self.under_way -= 1
        self.counts.points += cost if resource is Resource.GRAPHQL else 0
        self.counts.unchanged += cost == 0 and resource is Resource.REST
        busy = min(now - started, LONGEST_ANSWER)
        self.cpu.add(now, busy)
        if resource is Resource.GRAPHQL:
            self.graphql_cpu.add(now, busy)
        self.hours[resource].settle(reserved, cost, told)

    def rest(self, limit: Limit, resource: Resource, started: float, now: float, told: Told | None) -> None:
        """A limit was met: Retry-After, else until the reset when nothing is left, else a minute and then doubled."""
        self.counts.limits += 1
        if limit.retry_after is not None:
            until = now + max(limit.retry_after, MARGIN)
        elif limit.spent and told is not None and told.reset > now:
            self.hours[resource].close(told)
            return
        else:
            # Several under way that meet one limit are one offence.
            self.strikes += started >= self.rested_at
            until = now + min(FIRST_REST * 2 ** (max(self.strikes, 1) - 1), LONGEST_REST)
        self.rested_at = now
        self.rest_until = max(self.rest_until, until)
