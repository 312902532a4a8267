"""Tokens and their limits: points, requests, concurrency, points per minute; and violations of them.

The server has its own clock: `ServerClock.advance` skips time, `ServerClock(speed=60)` turns a minute into a second.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field

TOLERANCE = 0.1  # seconds: a client that sleeps for the exact time is not too early because of rounding


class ServerClock:
    """Seconds since the epoch on this server. `advance` and `speed` move it forward."""

    def __init__(self, start: float | None = None, speed: float = 1.0) -> None:
        self.speed = speed
        self._began = time.monotonic()
        self._start = time.time() if start is None else start
        self._jumped = 0.0

    def now(self) -> float:
        return self._start + self._jumped + (time.monotonic() - self._began) * self.speed

    def advance(self, seconds: float) -> None:
        """Skip this time; a test passes it to the client as its `sleep`."""
        self._jumped += seconds


@dataclass(frozen=True)
class TokenLimits:
    """Limits of a token. `window` is GitHub's hour, in seconds of the server's clock."""

    requests: int = 5000  # REST, in a window
    points: int = 5000  # GraphQL, in a window
    search: int = 30  # in a minute
    concurrent: int = 100
    rest_per_minute: int = 900
    graphql_per_minute: int = 2000
    window: float = 3600.0
    retry_after: int = 60  # wait required by a secondary limit


ANONYMOUS = TokenLimits(requests=60, points=0, search=10)


@dataclass(eq=False)
class AccessToken:
    """A credential. `private` are the private repositories (full names) it can access."""

    value: str
    login: str = "octo-reader"
    limits: TokenLimits = field(default_factory=TokenLimits)
    private: frozenset[str] = frozenset()
    installation: int | None = None
    expires_at: float | None = None  # the server's clock
    revoked: bool = False


@dataclass
class TokenAccount:
    """Requests and points that a token has used."""

    limits: TokenLimits
    used: dict[str, int] = field(default_factory=dict)
    reset: dict[str, int] = field(default_factory=dict)
    running: int = 0
    most_at_once: int = 0
    recent: dict[str, deque[float]] = field(default_factory=dict)
    told: dict[str, RequiredWait] = field(default_factory=dict)

    def limit(self, resource: str) -> int:
        chosen = {"graphql": self.limits.points, "search": self.limits.search}
        return chosen.get(resource, self.limits.requests)

    def remaining(self, resource: str) -> int:
        return max(0, self.limit(resource) - self.used.get(resource, 0))

    def refill(self, resource: str, now: float) -> None:
        """Start a new window when the last one has ended."""
        if now >= self.reset.get(resource, 0):
            window = 60.0 if resource == "search" else self.limits.window
            self.used[resource] = 0
            self.reset[resource] = math.ceil(now + window)

    def is_over_minute_limit(self, kind: str, now: float) -> bool:
        """Return whether this request exceeds the limit per minute; it is counted in any case."""
        times = self.recent.setdefault(kind, deque())
        while times and times[0] <= now - 60:
            times.popleft()
        times.append(now)
        allowed = self.limits.graphql_per_minute if kind == "graphql" else self.limits.rest_per_minute
        return len(times) > allowed


@dataclass
class RequiredWait:
    """A wait required by an answer: until then no further request for that resource ("*": for anything)."""

    until: float  # the server's clock
    at: float  # real seconds; a client with several threads may have had a request in flight
    why: str


@dataclass(frozen=True)
class Violation:
    """A rule of GitHub that a client broke."""

    request: int
    token: str
    rule: str  # remaining-0, retry-after, concurrency, per-minute, unanswered
    detail: str


class RateLimitLedger:
    """The accounts of all tokens, and the violations."""

    def __init__(self, clock: ServerClock, anonymous: TokenLimits = ANONYMOUS, grace: float = 0.5) -> None:
        self.clock = clock
        self.grace = grace
        self.anonymous = anonymous
        self.accounts: dict[str, TokenAccount] = {}
        self.violations: list[Violation] = []
        self.lock = threading.RLock()

    def account(self, token: AccessToken | None) -> TokenAccount:
        key = token.value if token else ""
        with self.lock:
            if key not in self.accounts:
                self.accounts[key] = TokenAccount(token.limits if token else self.anonymous)
            return self.accounts[key]

    def add_violation(self, request: int, token: AccessToken | None, rule: str, detail: str) -> None:
        with self.lock:
            self.violations.append(Violation(request, token.value if token else "", rule, detail))

    def add_required_wait(self, token: AccessToken | None, resource: str, until: float, why: str) -> None:
        """Record that an answer required this client to wait."""
        account = self.account(token)
        with self.lock:
            before = account.told.get(resource)
            if not before or before.until < until:
                account.told[resource] = RequiredWait(until, time.monotonic(), why)

    def check_wait(self, request: int, token: AccessToken | None, resource: str) -> None:
        """Record a violation if this request is sent before the time required by an earlier answer."""
        account, now = self.account(token), self.clock.now()
        with self.lock:
            for scope in ("*", resource):
                told = account.told.get(scope)
                if not told or now >= told.until - TOLERANCE:
                    account.told.pop(scope, None)
                elif account.most_at_once == 1 or time.monotonic() - told.at > self.grace:
                    self.add_violation(request, token, told.why, f"{resource}: {told.until - now:.1f} s too early")

    def begin_request(self, token: AccessToken | None) -> int:
        account = self.account(token)
        with self.lock:
            account.running += 1
            account.most_at_once = max(account.most_at_once, account.running)
            return account.running

    def end_request(self, token: AccessToken | None) -> None:
        with self.lock:
            self.account(token).running -= 1

    def charge(self, token: AccessToken | None, resource: str, points: int) -> None:
        account = self.account(token)
        with self.lock:
            account.used[resource] = account.used.get(resource, 0) + points

    def make_headers(self, token: AccessToken | None, resource: str) -> dict[str, str]:
        account = self.account(token)
        with self.lock:
            account.refill(resource, self.clock.now())
            return {
                "X-RateLimit-Limit": str(account.limit(resource)),
                "X-RateLimit-Remaining": str(account.remaining(resource)),
                "X-RateLimit-Used": str(account.used.get(resource, 0)),
                "X-RateLimit-Reset": str(account.reset[resource]),
                "X-RateLimit-Resource": resource,
            }
