"""Interpret GitHub's responses. No network, no clock.

::

    rate limit         403 or 429; in GraphQL also 200 with an error RATE_LIMITED         parse_limit_hit
    bad token          401, a suspended account                                           parse_token_rejection
    page too large     502 or 504; in GraphQL also several errors                         PageTooLargeError
    stale cursor       in GraphQL INVALID_CURSOR_ARGUMENTS                                StaleCursorError
    not found          404, 410, 451, 403; in GraphQL NOT_FOUND for the whole query       GitHubNotFoundError
    transient fault    500, 503, no JSON or incomplete JSON                               FaultyResponseError

`docs/guide/mine/github.md` describes the rules; GitHub's own pages are "Rate limits for the REST API" and "... the
GraphQL API".
"""

from __future__ import annotations

import email.utils
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from core.errors import InputError, Transient

RETRY_ADVICE = "run the same command again later"
TOO_LARGE_TYPES = ("RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED", "EXCESSIVE_PAGINATION")
"""GraphQL errors that a smaller page avoids."""
RATE_LIMIT_TYPES = ("RATE_LIMITED", "RATE_LIMIT")
NOT_FOUND_TYPES = ("NOT_FOUND", "FORBIDDEN")
SECONDARY_LIMIT_PHRASES = (
    "secondary rate limit",
    "abuse detection",
    "please retry your request again later",
    "wait a few minutes",
)
"""Phrases of limits that have no status or type of their own."""


class GitHubNotFoundError(InputError):
    """The requested object does not exist, or the tokens cannot read it."""


class PageTooLargeError(Transient):
    """GitHub could not answer in time: request a smaller page. The same page would fail again."""


class StaleCursorError(Transient):
    """GitHub does not accept any of its cursors any more: the list has to be read from the top."""


class FaultyResponseError(Transient):
    """The response is unusable: a fault of the server or the connection. Retried a few times."""


@dataclass(frozen=True, slots=True)
class MissingField:
    """Part of a GraphQL answer that is null because of an error. `path` leads to it."""

    path: tuple[str | int, ...]
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class GraphqlAnswer:
    """Answer to a GraphQL query: `data`, with nulls explained by `missing`."""

    data: dict[str, Any]
    missing: tuple[MissingField, ...] = ()


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """Answer to a conditional GET. Status 304: unchanged since `etag`, `data` is None, and the request was free."""

    status: int
    etag: str | None
    data: Any


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """Token budget reported by a response; `reset` in seconds since the epoch by GitHub's clock."""

    limit: int | None
    remaining: int
    reset: float


@dataclass(frozen=True, slots=True)
class RateLimitHit:
    """A rate limit. `retry_after`: seconds to wait, where reported; `is_exhausted`: wait for the budget's reset."""

    retry_after: float | None
    is_exhausted: bool


@dataclass(frozen=True)
class GitHubResponse:
    """An HTTP response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str
    graphql: bool

    @cached_property
    def parse_json(self) -> Any:
        """Body; None when it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @cached_property
    def graphql_errors(self) -> list[dict[str, Any]]:
        """Errors of a GraphQL response."""
        errors = self.parse_json.get("errors") if isinstance(self.parse_json, dict) and self.graphql else None
        return [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []

    @cached_property
    def graphql_data(self) -> dict[str, Any]:
        """Data of a GraphQL response; {} when there is none."""
        data = self.parse_json.get("data") if isinstance(self.parse_json, dict) and self.graphql else None
        return data if isinstance(data, dict) else {}

    @property
    def message(self) -> str:
        """GitHub's message."""
        if self.graphql_errors:
            return str(self.graphql_errors[0].get("message") or self.graphql_errors[0].get("type") or "")
        text = self.parse_json.get("message") if isinstance(self.parse_json, dict) else None
        return text if isinstance(text, str) else ""

    @property
    def sent_at(self) -> float | None:
        """Time by GitHub's clock, in seconds since the epoch."""
        try:
            return email.utils.parsedate_to_datetime(self.headers.get("date", "")).timestamp()
        except ValueError:
            return None


def parse_rate_limit(reply: GitHubResponse) -> RateLimitState | None:
    """Parse the budget from the headers, which errors have too. A query's `rateLimit` holds the same numbers."""
    remaining, reset = (
        _parse_number_header(reply, "x-ratelimit-remaining"),
        _parse_number_header(reply, "x-ratelimit-reset"),
    )
    if remaining is None or reset is None:
        return None
    limit = _parse_number_header(reply, "x-ratelimit-limit")
    return RateLimitState(int(limit) if limit is not None else None, int(remaining), reset)


def parse_cost(reply: GitHubResponse) -> int:
    """Return the points of the hourly budget that a request cost; 1 where the response has none."""
    # GitHub does not charge an answer that has not changed.
    if reply.status == 304:
        return 0
    rate = reply.graphql_data.get("rateLimit")
    cost = rate.get("cost") if isinstance(rate, dict) else None
    return cost if isinstance(cost, int) else 1


def parse_limit_hit(reply: GitHubResponse) -> RateLimitHit | None:
    """Return the rate limit that a response reports, if any."""
    text = reply.message.lower()
    by_type = any(error.get("type") in RATE_LIMIT_TYPES for error in reply.graphql_errors)
    by_words = text.startswith("api rate limit") or any(words in text for words in SECONDARY_LIMIT_PHRASES)
    retry_after = _parse_number_header(reply, "retry-after")
    spent = by_type or _parse_number_header(reply, "x-ratelimit-remaining") == 0
    if reply.status == 429 or by_type or (by_words and (reply.status == 403 or reply.graphql_errors)):
        return RateLimitHit(retry_after, spent)
    # Missing rights have the same status; only the headers of a limit distinguish the two.
    if reply.status == 403 and (retry_after is not None or spent):
        return RateLimitHit(retry_after, spent)
    return None


def parse_token_rejection(reply: GitHubResponse) -> str | None:
    """Return GitHub's message why the token is rejected, or None."""
    if reply.status == 401 or (reply.status == 403 and "account was suspended" in reply.message.lower()):
        return reply.message or f"status {reply.status}"
    return None


def raise_for_response(reply: GitHubResponse, what: str, server: str) -> None:
    """Raise the error for a response that is neither a limit nor a rejected token; return if it is usable.

    Args:
        reply: the response.
        what: name of the requested object, for messages.
        server: address of the API, for messages.

    Raises:
        PageTooLargeError, GitHubNotFoundError, FaultyResponseError: as described there.
        InputError: the server is not GitHub, or does not understand the request.
    """
    status = reply.status
    # GitHub aborts a query after ten seconds with these statuses; a smaller page may be fast enough.
    if status in (502, 504) and reply.graphql:
        raise PageTooLargeError(f"{what}: GitHub did not answer in time ({status})", advice=RETRY_ADVICE)
    if status >= 500 or status in (408, 409):
        raise FaultyResponseError(f"{what}: GitHub answers {status}", advice=RETRY_ADVICE)
    if status in (403, 404, 410, 451):
        # GitHub reports missing objects of a query with status 200, so another server answers here.
        if reply.graphql or not isinstance(reply.parse_json, dict):
            text = f"{status} {reply.message}".rstrip()
            raise InputError(f"{server} does not answer as GitHub's API does ({text})", advice="see --github-api")
        raise GitHubNotFoundError(
            f"{what}: {_explain_not_found(reply)}", advice="check its name, and whether the tokens can read it"
        )
    if 300 <= status < 400 and status != 304:
        raise InputError(f"{what}: {server} redirects elsewhere ({status})", advice="see --github-api")
    if status >= 400:
        raise InputError(f"{what}: {server} answers {status} {reply.message}".rstrip())
    if status != 304 and reply.parse_json is None:
        raise FaultyResponseError(f"{what}: GitHub's answer is not JSON, or incomplete", advice=RETRY_ADVICE)


def parse_graphql_answer(reply: GitHubResponse, what: str, server: str) -> GraphqlAnswer:
    """Parse the answer to a GraphQL query. Where only parts are missing, the rest is returned.

    Raises:
        PageTooLargeError, GitHubNotFoundError, FaultyResponseError, InputError: as in `raise_for_response`.
        StaleCursorError: GitHub rejects a cursor among the variables.
    """
    for error in reply.graphql_errors:
        text = str(error.get("message", ""))
        if error.get("type") in TOO_LARGE_TYPES or text.startswith("Something went wrong while executing your query"):
            raise PageTooLargeError(f"{what}: {text}", advice=RETRY_ADVICE)
        if error.get("type") == "INVALID_CURSOR_ARGUMENTS":
            raise StaleCursorError(f"{what}: {text}", advice=RETRY_ADVICE)
        if error.get("type") == "INSUFFICIENT_SCOPES":
            raise InputError(f"{what}: {text}", advice="give the token the scopes it names")
    data = {name: value for name, value in reply.graphql_data.items() if name != "rateLimit"}
    if not any(value is not None for value in data.values()):
        raise _explain_missing_data(reply, what, server)
    return GraphqlAnswer(data, tuple(_parse_missing_field(error) for error in reply.graphql_errors))


def _explain_missing_data(reply: GitHubResponse, what: str, server: str) -> Exception:
    """Build the error for a GraphQL response without data."""
    if any(error.get("type") in NOT_FOUND_TYPES for error in reply.graphql_errors) or (
        reply.graphql_data and not reply.graphql_errors
    ):
        return GitHubNotFoundError(
            f"{what}: {reply.message or 'not found'}", advice="check its name, and whether the tokens can read it"
        )
    if any("extensions" in error or "locations" in error for error in reply.graphql_errors) and not reply.graphql_data:
        return InputError(f"{server} does not understand the query for {what}: {reply.message}")
    return FaultyResponseError(
        f"{what}: GitHub's answer holds no data: {reply.message or reply.text[:80]!r}", advice=RETRY_ADVICE
    )


def _parse_missing_field(error: Mapping[str, Any]) -> MissingField:
    path = error.get("path")
    return MissingField(
        path=tuple(path) if isinstance(path, list) else (),
        type=str(error.get("type", "")),
        message=str(error.get("message", "")),
    )


def _explain_not_found(reply: GitHubResponse) -> str:
    if reply.status == 404:
        return "there is none, or these tokens cannot read it"
    return f"GitHub does not show it ({reply.status}): {reply.message}"


def _parse_number_header(reply: GitHubResponse, name: str) -> float | None:
    try:
        return float(reply.headers[name])
    except (KeyError, ValueError):
        return None
