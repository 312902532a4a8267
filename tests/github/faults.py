"""What goes wrong on GitHub, on demand. `FAULTS` names every kind; `Faults` says when which one strikes.

A fault replaces an answer (`instead`) or spoils it (`after`). When it strikes is either scripted - `once`, `every`,
`at` - or drawn from a seed by what is asked and how often it was: the same crawl meets the same faults, whatever
the order of its threads, and nothing fails more than `in_a_row` times.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.github.answers import Answer, Ask, as_json, message

if TYPE_CHECKING:
    from tests.github.server import GitHub

API = frozenset({"rest", "graphql"})
GRAPHQL = frozenset({"graphql"})
GIT = frozenset({"git"})
EVERYTHING = API | GIT


@dataclass(frozen=True)
class Fault:
    """One way to fail. `instead` answers without GitHub; `after` spoils what GitHub said."""

    name: str
    strikes: frozenset[str]
    instead: Callable[[GitHub, Ask], Answer] | None = None
    after: Callable[[Answer], Answer] | None = None
    fits: Callable[[Ask], bool] = lambda ask: True


def _reset_header(hub: GitHub, ask: Ask, seconds: float) -> dict[str, str]:
    resource = "graphql" if ask.kind == "graphql" else "core"
    reset = math.ceil(hub.clock.now() + seconds)
    return hub.books.headers(ask.token, resource) | {
        "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset),
        "X-RateLimit-Used": str(hub.books.account(ask.token).limit(resource)),
    }  # fmt: skip


def primary(seconds: float = 2) -> Fault:
    """Nothing remains: 403 with remaining 0, in GraphQL 200 with RATE_LIMITED; reset in so many seconds."""

    def instead(hub: GitHub, ask: Ask) -> Answer:
        headers = _reset_header(hub, ask, seconds)
        answer = limited(ask)
        answer.headers |= headers
        answer.retry_at = float(headers["X-RateLimit-Reset"])
        return answer

    return Fault("primary", API, instead)


def limited(ask: Ask) -> Answer:
    """How GitHub says that nothing remains."""
    text = f"API rate limit exceeded for user ID {1000 + len(ask.token.login) if ask.token else 0}."
    if ask.kind == "graphql":
        return replace(as_json(200, {"errors": [{"type": "RATE_LIMITED", "message": text}]}), points=0)
    return replace(message(403, text), points=0)


def secondary(status: int = 403, retry_after: int | None = None) -> Fault:
    """The secondary limit, with Retry-After in seconds or without: then one has to wait a minute."""

    def instead(hub: GitHub, ask: Ask) -> Answer:
        return too_fast(hub, status, retry_after)

    return Fault(f"secondary-{status}{'' if retry_after is None else '-retry-after'}", API, instead)


def too_fast(hub: GitHub, status: int, retry_after: int | None) -> Answer:
    """How GitHub says that one asks too fast."""
    text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    answer = message(status, text)
    if retry_after is not None:
        answer.headers["Retry-After"] = str(retry_after)
    answer.points = 0
    answer.retry_at = hub.clock.now() + (60 if retry_after is None else retry_after)
    return answer


def server_error(status: int) -> Fault:
    """500, 502, 503 or 504, as HTML, as a proxy before GitHub writes it. A timed-out query costs its points too."""

    def instead(hub: GitHub, ask: Ask) -> Answer:
        text = f"<html><head><title>{status}</title></head><body>Server Error</body></html>"
        return Answer(status, text.encode(), {"Content-Type": "text/html; charset=utf-8"})

    return Fault(f"http-{status}", EVERYTHING, instead)


def graphql_error(kind: str, text: str) -> Fault:
    """An answer of status 200 whose data is null."""

    def instead(hub: GitHub, ask: Ask) -> Answer:
        error = {"message": text} | ({"type": kind} if kind else {})
        return as_json(200, {"data": None, "errors": [error]})

    return Fault(f"graphql-{kind.lower().replace('_', '-') or 'something-went-wrong'}", GRAPHQL, instead)


def cut(at: int) -> Fault:
    """The connection breaks: before the answer (-1), or after so many bytes of its body."""
    return Fault(f"cut-{'before' if at < 0 else at}", EVERYTHING, after=lambda answer: replace(answer, cut_at=at))


def truncated(answer: Answer) -> Answer:
    """Half of the JSON, with a Content-Length that agrees."""
    return replace(answer, body=answer.body[: len(answer.body) // 2])


def malformed(answer: Answer) -> Answer:
    return replace(answer, body=b"<!DOCTYPE html><p>Unicorn!</p>")


def partial(answer: Answer) -> Answer:
    """Data with holes: every second element of the first list is null, and an error says that something is missing."""
    told = json.loads(answer.body)
    hole = _first_list(told.get("data"))
    if hole is None:
        told["data"] = None
    else:
        for index in range(0, len(hole), 2):
            hole[index] = None
    error = {"message": "Something went wrong while executing your query.", "path": ["repository"]}
    told.setdefault("errors", []).append(error)
    return replace(answer, body=json.dumps(told).encode())


def _first_list(value: object) -> list[object] | None:
    if isinstance(value, list):
        return value
    found = (_first_list(inner) for inner in value.values()) if isinstance(value, dict) else iter(())
    return next((each for each in found if each), None)


def slow(seconds: float) -> Fault:
    return Fault("slow", EVERYTHING, after=lambda answer: replace(answer, delay=seconds))


def _fetches(ask: Ask) -> bool:
    """Whether git asks for a pack, and not for the list of refs."""
    return ask.path.endswith("/git-upload-pack") and b"command=ls-refs" not in ask.body


def bad_credentials(hub: GitHub, ask: Ask) -> Answer:
    return message(401, "Bad credentials")


WENT_WRONG = (
    "Something went wrong while executing your query. This may be the result of a timeout, or it could be a GitHub "
    "bug. Please include `0000:1111:2222` when reporting this issue."
)
RESOURCES = "Resource limits for this query exceeded."
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        primary(),
        secondary(403), secondary(403, 1), secondary(429), secondary(429, 1),
        server_error(500), server_error(502), server_error(503), server_error(504),
        cut(-1), cut(0), cut(200), slow(0.3),
        Fault("malformed", API, after=malformed),
        Fault("truncated", API, after=truncated),
        replace(primary(), name="graphql-rate-limited", strikes=GRAPHQL),
        graphql_error("RESOURCE_LIMITS_EXCEEDED", RESOURCES),
        graphql_error("", WENT_WRONG),
        Fault("partial", GRAPHQL, after=partial),
        Fault("expired-token", API, bad_credentials),
        Fault("cut-pack", GIT, after=lambda answer: replace(answer, cut_at=1000), fits=_fetches),
    )
}  # fmt: skip
PASSING = tuple(name for name in FAULTS if name != "expired-token")  # those that a patient client gets over

QUICK = tuple(name for name in PASSING if name not in ("secondary-403", "secondary-429"))  # no minute's wait


@dataclass
class Rule:
    """When a fault strikes: at requests of these kinds and paths, after so many, so often."""

    fault: Fault
    times: float = 1
    after: int = 0  # matching requests let through first
    kinds: frozenset[str] | None = None
    when: Callable[[Ask], bool] | None = None

    def matches(self, ask: Ask) -> bool:
        kinds = self.fault.strikes if self.kinds is None else self.kinds
        return ask.kind in kinds and self.fault.fits(ask) and (self.when is None or self.when(ask))


@dataclass
class Faults:
    """The plan of a test. `struck` counts what happened, by name."""

    rules: list[Rule] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    seed: int | None = None
    rate: float = 0.0
    names: tuple[str, ...] = ()
    in_a_row: int = 2
    largest_page: int | None = None
    too_large: Fault = field(default_factory=lambda: server_error(502))
    events: list[tuple[int, Callable[[GitHub], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()

    @classmethod
    def seeded(cls, seed: int, *, rate: float = 0.2, names: Iterable[str] = PASSING, in_a_row: int = 2) -> Faults:
        """Strike that share of requests with faults of these names."""
        return cls(seed=seed, rate=rate, names=tuple(names), in_a_row=in_a_row)

    def once(
        self,
        fault: Fault | str,
        *,
        times: float = 1,
        after: int = 0,
        kinds: Iterable[str] | None = None,
        when: Callable[[Ask], bool] | None = None,
    ) -> Faults:  # fmt: skip
        """Strike the next requests that fit: `times` of them, once `after` have passed. Returns itself."""
        chosen = FAULTS[fault] if isinstance(fault, str) else fault
        self.rules.append(Rule(chosen, times, after, frozenset(kinds) if kinds else None, when))
        return self

    def always(self, fault: Fault | str, *, when: Callable[[Ask], bool] | None = None) -> Faults:
        """Strike every request that fits."""
        return self.once(fault, times=math.inf, when=when)

    def pages_above(self, size: int, fault: Fault | str = "http-502") -> Faults:
        """GraphQL pages of more than `size` always fail so."""
        self.largest_page, self.too_large = size, FAULTS[fault] if isinstance(fault, str) else fault
        return self

    def at(self, request: int, event: Callable[[GitHub], None]) -> Faults:
        """When the server has been asked so often, let something happen: a rename, a revoked token."""
        self.events.append((request, event))
        return self

    def pick(self, hub: GitHub, ask: Ask, page: int) -> Fault | None:
        """The fault for this request, or None."""
        with self._lock:
            due = [event for number, event in self.events if number <= ask.number]
            self.events = [pair for pair in self.events if pair[0] > ask.number]
        for event in due:
            event(hub)
        with self._lock:
            fault = self._scripted(ask) or self._drawn(ask)
            if not fault and self.largest_page is not None and page > self.largest_page:
                fault = self.too_large
            if fault:
                self.struck[fault.name] += 1
            return fault

    def _scripted(self, ask: Ask) -> Fault | None:
        for rule in self.rules:
            if not rule.matches(ask) or rule.times <= 0:
                continue
            if rule.after > 0:
                rule.after -= 1
                continue
            rule.times -= 1
            return rule.fault
        return None

    def _drawn(self, ask: Ask) -> Fault | None:
        if self.seed is None or ask.kind == "free":
            return None
        key = hashlib.sha256(f"{self.seed} {ask.method} {ask.path} {sorted(ask.query.items())}".encode() + ask.body)
        name = key.hexdigest()
        attempt = self._seen[name]
        self._seen[name] += 1
        if attempt % (self.in_a_row + 1) == self.in_a_row:
            return None
        draw = int.from_bytes(hashlib.sha256(f"{name} {attempt}".encode()).digest()[:8], "big")
        if draw / 2**64 >= self.rate:
            return None
        fitting = [FAULTS[each] for each in self.names if ask.kind in FAULTS[each].strikes]
        fitting = [fault for fault in fitting if fault.fits(ask)]
        return fitting[draw % len(fitting)] if fitting else None
