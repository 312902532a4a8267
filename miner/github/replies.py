"""What GitHub's answers mean, whichever of its many ways of saying so it chose. No network, no clock.

::

    a limit            403 or 429; in GraphQL also 200 with an error RATE_LIMITED         limit_of
    a bad token        401, an account that is suspended                                  refusal_of
    too much asked     502 or 504; in GraphQL also errors of several names                TooMuch
    an old cursor      in GraphQL INVALID_CURSOR_ARGUMENTS                                StaleCursor
    nothing there      404, 410, 451, 403; in GraphQL NOT_FOUND for all that was asked    Gone
    what may pass      500, 503, no JSON or half of it                                    Faulty

`docs/github.md` tells the rules; GitHub's own pages are "Rate limits for the REST API" and "... the GraphQL API".
"""

from __future__ import annotations

import email.utils
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mergemill.errors import InputError, Transient

AGAIN = "run the same command again later"
SMALLER = ("RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED", "EXCESSIVE_PAGINATION")
"""GraphQL errors that a smaller page avoids."""
LIMITED = ("RATE_LIMITED", "RATE_LIMIT")
NOT_SHOWN = ("NOT_FOUND", "FORBIDDEN")
SECONDARY = ("secondary rate limit", "abuse detection", "please retry your request again later", "wait a few minutes")
"""Words of the limits that have no number of their own."""


class Gone(InputError):  # noqa: N818 - what GitHub has, not what we did
    """What was asked for does not exist, or the tokens may not see it."""


class TooMuch(Transient):
    """GitHub could not answer in its time: ask for a smaller page. The same page once more would fail again."""


class StaleCursor(Transient):
    """GitHub does not take a cursor of its own any more: the list has to be gone through from its top."""


class Faulty(Transient):
    """An answer that was none: a fault of the server or of the line to it. Tried again a few times."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of a GraphQL answer that could not be given: it is null there. `path` leads to it."""

    path: tuple[str | int, ...]
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a GraphQL query gave: `data` as asked, with nulls where `missing` tells why."""

    data: dict[str, Any]
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """What a conditional GET gave. Status 304: nothing has changed since `etag`, `data` is None, and it was free."""

    status: int
    etag: str | None
    data: Any


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer said of its token's budget; `reset` in seconds since the epoch by GitHub's clock."""

    limit: int | None
    remaining: int
    reset: float


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit was met. `retry_after`: seconds to wait, where GitHub says; `spent`: wait until the budget's reset."""

    retry_after: float | None
    spent: bool


@dataclass(frozen=True)
class Reply:
    """One HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str
    graphql: bool

    @cached_property
    def json(self) -> Any:
        """The body; None when it is no JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @cached_property
    def errors(self) -> list[dict[str, Any]]:
        """GraphQL's errors."""
        found = self.json.get("errors") if isinstance(self.json, dict) and self.graphql else None
        return [error for error in found if isinstance(error, dict)] if isinstance(found, list) else []

    @cached_property
    def data(self) -> dict[str, Any]:
        """GraphQL's data, {} when there is none."""
        found = self.json.get("data") if isinstance(self.json, dict) and self.graphql else None
        return found if isinstance(found, dict) else {}

    @property
    def message(self) -> str:
        """What GitHub says in words."""
        if self.errors:
            return str(self.errors[0].get("message") or self.errors[0].get("type") or "")
        said = self.json.get("message") if isinstance(self.json, dict) else None
        return said if isinstance(said, str) else ""

    @property
    def sent_at(self) -> float | None:
        """GitHub's clock, in seconds since the epoch."""
        try:
            return email.utils.parsedate_to_datetime(self.headers.get("date", "")).timestamp()
        except ValueError:
            return None


def told_of(reply: Reply) -> Told | None:
    """The budget, from the headers: they come with errors too. A GraphQL query's own `rateLimit` says the same."""
    remaining, reset = _number(reply, "x-ratelimit-remaining"), _number(reply, "x-ratelimit-reset")
    if remaining is None or reset is None:
        return None
    limit = _number(reply, "x-ratelimit-limit")
    return Told(int(limit) if limit is not None else None, int(remaining), reset)


def cost_of(reply: Reply) -> int:
    """Points of the hour's budget that a request cost; one where the answer does not say."""
    if reply.status == 304:
        return 0
    rate = reply.data.get("rateLimit")
    cost = rate.get("cost") if isinstance(rate, dict) else None
    return cost if isinstance(cost, int) else 1


def limit_of(reply: Reply) -> Limit | None:
    """The limit that an answer speaks of, if it does."""
    said = reply.message.lower()
    by_type = any(error.get("type") in LIMITED for error in reply.errors)
    by_words = said.startswith("api rate limit") or any(words in said for words in SECONDARY)
    retry_after = _number(reply, "retry-after")
    spent = by_type or _number(reply, "x-ratelimit-remaining") == 0
    if reply.status == 429 or by_type or (by_words and (reply.status == 403 or reply.errors)):
        return Limit(retry_after, spent)
    if reply.status == 403 and (retry_after is not None or spent):
        return Limit(retry_after, spent)
    return None


def refusal_of(reply: Reply) -> str | None:
    """Why the token is no good, in GitHub's words, or None."""
    if reply.status == 401 or (reply.status == 403 and "account was suspended" in reply.message.lower()):
        return reply.message or f"status {reply.status}"
    return None


def check(reply: Reply, what: str, server: str) -> None:
    """Raise what an answer means that is neither a limit nor a refused token; pass one that can be used.

    Args:
        reply: the answer.
        what: what was asked for, for people.
        server: the API's address, for people.

    Raises:
        TooMuch, Gone, Faulty: see there.
        InputError: the server is no GitHub, or does not know what was asked.
    """
    status = reply.status
    if status in (502, 504) and reply.graphql:
        raise TooMuch(f"{what}: GitHub did not answer in its time ({status})", advice=AGAIN)
    if status >= 500 or status in (408, 409):
        raise Faulty(f"{what}: GitHub answers {status}", advice=AGAIN)
    if status in (403, 404, 410, 451):
        if reply.graphql or not isinstance(reply.json, dict):
            said = f"{status} {reply.message}".rstrip()
            raise InputError(f"{server} does not answer as GitHub's API does ({said})", advice="see --github-api")
        raise Gone(f"{what}: {_absent(reply)}", advice="check its name, and what the tokens may read")
    if 300 <= status < 400 and status != 304:
        raise InputError(f"{what}: {server} sends us elsewhere ({status})", advice="see --github-api")
    if status >= 400:
        raise InputError(f"{what}: {server} answers {status} {reply.message}".rstrip())
    if status != 304 and reply.json is None:
        raise Faulty(f"{what}: GitHub's answer is not JSON, or half of it", advice=AGAIN)


def answer_of(reply: Reply, what: str, server: str) -> Answer:
    """What a GraphQL query gave. Where only parts are missing, the rest is the answer.

    Raises:
        TooMuch, Gone, Faulty, InputError: as in `check`, which has passed.
        StaleCursor: a cursor among the variables is none.
    """
    for error in reply.errors:
        said = str(error.get("message", ""))
        if error.get("type") in SMALLER or said.startswith("Something went wrong while executing your query"):
            raise TooMuch(f"{what}: {said}", advice=AGAIN)
        if error.get("type") == "INVALID_CURSOR_ARGUMENTS":
            raise StaleCursor(f"{what}: {said}", advice=AGAIN)
        if error.get("type") == "INSUFFICIENT_SCOPES":
            raise InputError(f"{what}: {said}", advice="give the token the scopes it names")
    data = {name: value for name, value in reply.data.items() if name != "rateLimit"}
    if not any(value is not None for value in data.values()):
        raise _nothing(reply, what, server)
    return Answer(data, tuple(_missing(error) for error in reply.errors))


def _nothing(reply: Reply, what: str, server: str) -> Exception:
    """Why a GraphQL answer holds no data at all."""
    if any(error.get("type") in NOT_SHOWN for error in reply.errors) or (reply.data and not reply.errors):
        return Gone(
            f"{what}: {reply.message or 'there is nothing'}", advice="check its name, and what the tokens may read"
        )
    if any("extensions" in error or "locations" in error for error in reply.errors) and not reply.data:
        return InputError(f"{server} does not understand the query for {what}: {reply.message}")
    return Faulty(f"{what}: GitHub's answer holds no data: {reply.message or reply.text[:80]!r}", advice=AGAIN)


def _missing(error: Mapping[str, Any]) -> Missing:
    path = error.get("path")
    return Missing(
        path=tuple(path) if isinstance(path, list) else (),
        type=str(error.get("type", "")),
        message=str(error.get("message", "")),
    )


def _absent(reply: Reply) -> str:
    if reply.status == 404:
        return "there is none, or these tokens may not see it"
    return f"GitHub does not show it ({reply.status}): {reply.message}"


def _number(reply: Reply, name: str) -> float | None:
    try:
        return float(reply.headers[name])
    except (KeyError, ValueError):
        return None
