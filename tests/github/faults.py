"""Faults of GitHub on demand. `FAULTS` lists every kind; a `FaultPlan` decides when each one occurs.

A fault replaces an answer (`instead`) or damages it (`after`). Its occurrence is either scripted (`add_once`,
`add_always`, `schedule_event`) or drawn from a seed, by the request and its number of repetitions: the same crawl meets
the same faults whatever the order of its threads, and nothing fails more than `in_a_row` times.
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

from tests.github.answers import ApiRequest, ApiResponse, make_error_response, make_json_response

if TYPE_CHECKING:
    from tests.github.server import GitHub

API = frozenset({"rest", "graphql"})
GRAPHQL = frozenset({"graphql"})
GIT = frozenset({"git"})
EVERYTHING = API | GIT


@dataclass(frozen=True)
class ServerFault:
    """One kind of failure. `instead` replaces the answer; `after` damages it."""

    name: str
    strikes: frozenset[str]
    instead: Callable[[GitHub, ApiRequest], ApiResponse] | None = None
    after: Callable[[ApiResponse], ApiResponse] | None = None
    fits: Callable[[ApiRequest], bool] = lambda ask: True


def _reset_header(hub: GitHub, ask: ApiRequest, seconds: float) -> dict[str, str]:
    resource = "graphql" if ask.kind == "graphql" else "core"
    reset = math.ceil(hub.clock.now() + seconds)
    return hub.books.make_headers(ask.token, resource) | {
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(reset),
        "X-RateLimit-Used": str(hub.books.account(ask.token).limit(resource)),
    }


def make_primary_limit(seconds: float = 2) -> ServerFault:
    """No budget remains: 403 with remaining 0, in GraphQL 200 with RATE_LIMITED; reset after this many seconds."""

    def instead(hub: GitHub, ask: ApiRequest) -> ApiResponse:
        headers = _reset_header(hub, ask, seconds)
        answer = make_primary_limit_response(ask)
        answer.headers |= headers
        answer.retry_at = float(headers["X-RateLimit-Reset"])
        return answer

    return ServerFault("primary", API, instead)


def make_primary_limit_response(ask: ApiRequest) -> ApiResponse:
    """Return GitHub's response for an exhausted budget."""
    text = f"API rate limit exceeded for user ID {1000 + len(ask.token.login) if ask.token else 0}."
    if ask.kind == "graphql":
        return replace(make_json_response(200, {"errors": [{"type": "RATE_LIMITED", "message": text}]}), points=0)
    return replace(make_error_response(403, text), points=0)


def make_secondary_limit(status: int = 403, retry_after: int | None = None) -> ServerFault:
    """The secondary limit, with Retry-After in seconds or without, which requires a wait of a minute."""

    def instead(hub: GitHub, ask: ApiRequest) -> ApiResponse:
        return make_secondary_limit_response(hub, status, retry_after)

    return ServerFault(f"secondary-{status}{'' if retry_after is None else '-retry-after'}", API, instead)


def make_secondary_limit_response(hub: GitHub, status: int, retry_after: int | None) -> ApiResponse:
    """Return GitHub's response for too frequent requests."""
    text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    answer = make_error_response(status, text)
    if retry_after is not None:
        answer.headers["Retry-After"] = str(retry_after)
    answer.points = 0
    answer.retry_at = hub.clock.now() + (60 if retry_after is None else retry_after)
    return answer


def make_server_error(status: int) -> ServerFault:
    """500, 502, 503 or 504 as HTML from a proxy before GitHub. A query that times out costs its points as well."""

    def instead(hub: GitHub, ask: ApiRequest) -> ApiResponse:
        text = f"<html><head><title>{status}</title></head><body>Server Error</body></html>"
        return ApiResponse(status, text.encode(), {"Content-Type": "text/html; charset=utf-8"})

    return ServerFault(f"http-{status}", EVERYTHING, instead)


def make_graphql_error(kind: str, text: str) -> ServerFault:
    """A response of status 200 whose data is null."""

    def instead(hub: GitHub, ask: ApiRequest) -> ApiResponse:
        error = {"message": text} | ({"type": kind} if kind else {})
        return make_json_response(200, {"data": None, "errors": [error]})

    return ServerFault(f"graphql-{kind.lower().replace('_', '-') or 'something-went-wrong'}", GRAPHQL, instead)


def make_cut(at: int) -> ServerFault:
    """A broken connection: before the answer (-1), or after this many bytes of its body."""
    return ServerFault(f"cut-{'before' if at < 0 else at}", EVERYTHING, after=lambda answer: replace(answer, cut_at=at))


def truncate_body(answer: ApiResponse) -> ApiResponse:
    """Return half of the JSON, with a matching Content-Length."""
    return replace(answer, body=answer.body[: len(answer.body) // 2])


def break_json(answer: ApiResponse) -> ApiResponse:
    return replace(answer, body=b"<!DOCTYPE html><p>Unicorn!</p>")


def drop_nodes(answer: ApiResponse) -> ApiResponse:
    """Replace every second element of the first list by null, with an error about the missing data."""
    result = json.loads(answer.body)
    hole = _first_list(result.get("data"))
    if hole is None:
        result["data"] = None
    else:
        for index in range(0, len(hole), 2):
            hole[index] = None
    error = {"message": "Something went wrong while executing your query.", "path": ["repository"]}
    result.setdefault("errors", []).append(error)
    return replace(answer, body=json.dumps(result).encode())


def _first_list(value: object) -> list[object] | None:
    if isinstance(value, list):
        return value
    lists = (_first_list(inner) for inner in value.values()) if isinstance(value, dict) else iter(())
    return next((each for each in lists if each), None)


def make_delay(seconds: float) -> ServerFault:
    return ServerFault("slow", EVERYTHING, after=lambda answer: replace(answer, delay=seconds))


def _is_pack_request(ask: ApiRequest) -> bool:
    """Return whether git requests a pack, not the list of refs."""
    return ask.path.endswith("/git-upload-pack") and b"command=ls-refs" not in ask.body


def make_bad_credentials_response(hub: GitHub, ask: ApiRequest) -> ApiResponse:
    return make_error_response(401, "Bad credentials")


WENT_WRONG = (
    "Something went wrong while executing your query. This may be the result of a timeout, or it could be a GitHub "
    "bug. Please include `0000:1111:2222` when reporting this issue."
)
RESOURCES = "Resource limits for this query exceeded."
FAULTS: dict[str, ServerFault] = {
    fault.name: fault
    for fault in (
        make_primary_limit(),
        make_secondary_limit(403),
        make_secondary_limit(403, 1),
        make_secondary_limit(429),
        make_secondary_limit(429, 1),
        make_server_error(500),
        make_server_error(502),
        make_server_error(503),
        make_server_error(504),
        make_cut(-1),
        make_cut(0),
        make_cut(200),
        make_delay(0.3),
        ServerFault("malformed", API, after=break_json),
        ServerFault("truncated", API, after=truncate_body),
        replace(make_primary_limit(), name="graphql-rate-limited", strikes=GRAPHQL),
        make_graphql_error("RESOURCE_LIMITS_EXCEEDED", RESOURCES),
        make_graphql_error("", WENT_WRONG),
        ServerFault("partial", GRAPHQL, after=drop_nodes),
        ServerFault("expired-token", API, make_bad_credentials_response),
        ServerFault("cut-pack", GIT, after=lambda answer: replace(answer, cut_at=1000), fits=_is_pack_request),
    )
}
PASSING = tuple(name for name in FAULTS if name != "expired-token")  # faults that a patient client overcomes

QUICK = tuple(name for name in PASSING if name not in ("secondary-403", "secondary-429"))  # no wait of a minute


@dataclass
class FaultRule:
    """Occurrence of a fault: for requests of these kinds and paths, after this many, this often."""

    fault: ServerFault
    times: float = 1
    after: int = 0  # matching requests that pass first
    kinds: frozenset[str] | None = None
    when: Callable[[ApiRequest], bool] | None = None

    def matches(self, ask: ApiRequest) -> bool:
        kinds = self.fault.strikes if self.kinds is None else self.kinds
        return ask.kind in kinds and self.fault.fits(ask) and (self.when is None or self.when(ask))


@dataclass
class FaultPlan:
    """The faults of a test. `counts` has the number of occurrences by name."""

    rules: list[FaultRule] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    seed: int | None = None
    rate: float = 0.0
    names: tuple[str, ...] = ()
    in_a_row: int = 2
    largest_page: int | None = None
    too_large: ServerFault = field(default_factory=lambda: make_server_error(502))
    events: list[tuple[int, Callable[[GitHub], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()

    @classmethod
    def from_seed(cls, seed: int, *, rate: float = 0.2, names: Iterable[str] = PASSING, in_a_row: int = 2) -> FaultPlan:
        """Return a plan in which this share of requests fails with faults of these names."""
        return cls(seed=seed, rate=rate, names=tuple(names), in_a_row=in_a_row)

    def add_once(
        self,
        fault: ServerFault | str,
        *,
        times: float = 1,
        after: int = 0,
        kinds: Iterable[str] | None = None,
        when: Callable[[ApiRequest], bool] | None = None,
    ) -> FaultPlan:
        """Fail the next matching requests: `times` of them, after `after` have passed. Return the plan."""
        chosen = FAULTS[fault] if isinstance(fault, str) else fault
        self.rules.append(FaultRule(chosen, times, after, frozenset(kinds) if kinds else None, when))
        return self

    def add_always(self, fault: ServerFault | str, *, when: Callable[[ApiRequest], bool] | None = None) -> FaultPlan:
        """Fail every matching request."""
        return self.add_once(fault, times=math.inf, when=when)

    def fail_large_pages(self, size: int, fault: ServerFault | str = "http-502") -> FaultPlan:
        """Fail all GraphQL pages of more than `size`."""
        self.largest_page, self.too_large = size, FAULTS[fault] if isinstance(fault, str) else fault
        return self

    def schedule_event(self, request: int, event: Callable[[GitHub], None]) -> FaultPlan:
        """Trigger an event after this many requests: a rename, a revoked token."""
        self.events.append((request, event))
        return self

    def select_fault(self, hub: GitHub, ask: ApiRequest, page: int) -> ServerFault | None:
        """Return the fault for this request, or None."""
        with self._lock:
            due = [event for number, event in self.events if number <= ask.number]
            self.events = [pair for pair in self.events if pair[0] > ask.number]
        for event in due:
            event(hub)
        with self._lock:
            fault = self._select_scripted(ask) or self._draw_fault(ask)
            if not fault and self.largest_page is not None and page > self.largest_page:
                fault = self.too_large
            if fault:
                self.counts[fault.name] += 1
            return fault

    def _select_scripted(self, ask: ApiRequest) -> ServerFault | None:
        for rule in self.rules:
            if not rule.matches(ask) or rule.times <= 0:
                continue
            if rule.after > 0:
                rule.after -= 1
                continue
            rule.times -= 1
            return rule.fault
        return None

    def _draw_fault(self, ask: ApiRequest) -> ServerFault | None:
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
