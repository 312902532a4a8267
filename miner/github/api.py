"""GitHub's API for the crawler: a request, and its answer or any of a few errors.

The layers below select the token (`pool`), wait for limits (`budget`), interpret responses (`responses`) and retry;
`client` holds the connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from core.errors import InputError, MergemillError
from miner.github.auth import Credential, explain_missing_token, load_credentials
from miner.github.budget import Resource
from miner.github.client import ConnectionPool, GitHubConnection
from miner.github.pool import Lease, SystemClock, TokenPool
from miner.github.responses import (
    RETRY_ADVICE,
    FaultyResponseError,
    GitHubResponse,
    GraphqlAnswer,
    RestAnswer,
    parse_graphql_answer,
    parse_limit_hit,
    parse_token_rejection,
    raise_for_response,
)

if TYPE_CHECKING:
    from core.settings.machine import HostSettings
    from core.settings.mining import GitHubSettings

RATE_LIMIT_FIELDS = "rateLimit { limit cost remaining resetAt }"
"""Field that every query must contain: it costs nothing and returns the rate limit and the cost."""
TIMEOUT_SECONDS = 40
"""Seconds without a byte after which a request is aborted; GitHub itself aborts after 10."""
ATTEMPTS = 5
"""How often a request is sent before its failure is raised."""
MAX_PAUSE = 30.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubRepository:
    """Repository from the REST API. `full_name` is the current; `etag` makes the next request conditional."""

    node_id: str
    database_id: int
    full_name: str
    clone_url: str
    default_branch: str
    archived: bool
    fork: bool
    parent: str | None
    """Full name of the repository it was forked from."""
    private: bool
    language: str | None
    license: str | None
    """SPDX id, where GitHub recognises it."""
    size: int
    """KB."""
    stars: int
    pushed_at: str | None
    """ISO 8601 in UTC."""
    etag: str | None


@dataclass(frozen=True, slots=True)
class RemainingQuota:
    """Remaining points and requests of a token's hour; None on an Enterprise server without limits."""

    token: str
    points: int | None = None
    requests: int | None = None
    problem: str = ""
    """Why the numbers are unknown."""
    is_rejected: bool = False
    """Whether the server rejects the token."""


class GitHubApi:
    """Client of GitHub's API. Thread-safe; a context manager, whose exit cancels threads that wait."""

    def __init__(
        self,
        github: GitHubSettings,
        host: HostSettings,
        *,
        clock: SystemClock | None = None,
        first_pause: float = 1.0,
        timeout: int = TIMEOUT_SECONDS,
    ) -> None:
        """Prepare the client; nothing is sent yet.

        Args:
            github: address, tokens, App, longest wait and concurrency.
            host: CA bundle.
            clock: the time, and how to wait.
            first_pause: most seconds before the first retry; doubled for each further retry.
            timeout: seconds without a byte after which a request is aborted.

        Raises:
            InputError: a token or the App's settings are unusable.
        """
        self.server = github.api
        self.patience = github.patience
        self.first_pause = first_pause
        self.pool = TokenPool(load_credentials(github), concurrency=github.concurrency, clock=clock)
        bundle = host.find_ca_bundle()
        self._connections = ConnectionPool(self.server, str(bundle) if bundle else True, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.stop()
        self._connections.close()

    def require_token(self, what: str = "mining pull requests") -> None:
        """Raise MachineError when no token is set: GraphQL needs a token."""
        if all(slot.credential.is_anonymous for slot in self.pool.slots):
            raise explain_missing_token(what)

    def query_graphql(
        self, query: str, variables: Mapping[str, Any] | None = None, *, what: str = "a query"
    ) -> GraphqlAnswer:
        """Send a query, which must contain RATE_LIMIT_FIELDS.

        Args:
            query: an operation.
            variables: variables of the query.
            what: name of the requested object, such as `owner/name`; for messages.

        Raises:
            PageTooLargeError: GitHub could not answer in time; request a smaller page.
            GitHubNotFoundError: none of the requested objects exists or is visible.
            InputError: GitHub accepts no token any more, the address is not GitHub's, or the query is invalid.
            MachineError: no token is set, or the server's certificate is unknown.
            Transient: a limit lasts longer than `github_patience`, or the network failed.
        """
        if RATE_LIMIT_FIELDS not in query:
            raise ValueError("the query does not ask for RATE")
        self.require_token(what)
        body = {"query": query, "variables": dict(variables or {})}

        def attempt() -> GraphqlAnswer:
            reply = self._request(Resource.GRAPHQL, lambda line: line.post_query(body), what)
            raise_for_response(reply, what, self.server)
            return parse_graphql_answer(reply, what, self.server)

        return self._retry(attempt)

    def get_rest(self, path: str, etag: str | None = None, *, what: str = "") -> RestAnswer:
        """GET a path such as `/repos/o/n`; with the `etag` of an earlier answer, an unchanged answer is free (304).

        Raises:
            GitHubNotFoundError, InputError, MachineError, Transient: as in `query_graphql`. Without a token, 60
                requests an hour are allowed.
        """
        what = what or path
        headers = {"If-None-Match": etag} if etag else {}

        def attempt() -> RestAnswer:
            reply = self._request(Resource.REST, lambda line: line.get(path, dict(headers)), what)
            raise_for_response(reply, what, self.server)
            return RestAnswer(reply.status, reply.headers.get("etag") or etag, reply.parse_json)

        return self._retry(attempt)

    def fetch_repository(self, name: str, known: GitHubRepository | None = None) -> GitHubRepository:
        """Fetch a repository, also by a former name. Return `known` when nothing has changed.

        Raises:
            GitHubNotFoundError: there is none, or the tokens cannot read it.
            InputError, MachineError, Transient: as in `get_rest`.
        """
        answer = self.get_rest(f"/repos/{quote(name)}", known.etag if known else None, what=name)
        if answer.status == 304 and known:
            return known
        return _parse_repository(answer, name)

    def find_git_token(self) -> str | None:
        """Return a token that git may clone with; None when no token is in use."""
        accepted = (slot.credential for slot in self.pool.slots if not slot.retired_reason)
        return next((token for credential in accepted if (token := self._connections.find_secret(credential))), None)

    def fetch_remaining_quotas(self) -> list[RemainingQuota]:
        """Fetch the remaining quota of each token's hour. The request is free, does not wait and never raises."""
        return [self._fetch_remaining_quota(slot.credential) for slot in self.pool.slots]

    def summarize_usage(self) -> dict[str, Any]:
        """Return requests, points and seconds waited so far, in total and for each token."""
        return self.pool.summarize_usage()

    def _retry(self, attempt: Callable[[], T]) -> T:
        """Call `attempt` again after a failure, with growing pauses."""
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(self.first_pause, MAX_PAUSE),
            retry=retry_if_exception_type(FaultyResponseError),
            sleep=self.pool.pause,
            reraise=True,
        )
        result: T = retrying(attempt)
        return result

    def _request(
        self, resource: Resource, ask: Callable[[GitHubConnection], GitHubResponse], what: str
    ) -> GitHubResponse:
        """Return a response that reports neither a limit nor a bad token; wait and change tokens until there is one."""
        deadline = self.pool.clock.now() + self.patience
        while True:
            with self.pool.lease(resource, deadline) as lease:
                reply = self._send(lease, ask, what)
                if not (lease.limit or lease.rejected_reason):
                    return reply

    def _send(self, lease: Lease, ask: Callable[[GitHubConnection], GitHubResponse], what: str) -> GitHubResponse:
        """Send over a connection of the lease's token, and note the response in the lease."""
        credential = lease.slot.credential
        reply = self._connections.send(credential, ask, what, graphql=lease.resource is Resource.GRAPHQL)
        lease.reply, lease.limit, lease.rejected_reason = reply, parse_limit_hit(reply), parse_token_rejection(reply)
        # Tokens of Apps expire after an hour, so the first rejection is not held against the credential.
        if lease.rejected_reason and self._connections.renew_token(credential):
            lease.rejected_reason = None
            raise FaultyResponseError(
                f"{what}: the token of {credential.label} was rejected; a new one is requested", advice=RETRY_ADVICE
            )
        return reply

    def _fetch_remaining_quota(self, credential: Credential) -> RemainingQuota:
        label = credential.label
        try:
            reply = self._connections.send(
                credential, lambda line: line.get("/rate_limit", {}), "the limits", graphql=False
            )
        except MergemillError as error:
            return RemainingQuota(label, problem=error.format_line(), is_rejected=isinstance(error, InputError))
        if why := parse_token_rejection(reply):
            return RemainingQuota(label, problem=why, is_rejected=True)
        # An Enterprise server may have no limits at all.
        if reply.status == 404 and "not enabled" in reply.message:
            return RemainingQuota(label)
        try:
            resources = reply.parse_json["resources"]
            return RemainingQuota(
                label, resources[Resource.GRAPHQL]["remaining"], resources[Resource.REST]["remaining"]
            )
        except (KeyError, TypeError):
            return RemainingQuota(label, problem=f"{self.server} answers {reply.status} {reply.message}".rstrip())


def _parse_repository(answer: RestAnswer, name: str) -> GitHubRepository:
    """Parse a repository; raise FaultyResponseError when the answer describes none."""
    about = answer.data
    try:
        return GitHubRepository(
            node_id=about["node_id"],
            database_id=about["id"],
            full_name=about["full_name"],
            clone_url=about["clone_url"],
            default_branch=about["default_branch"],
            archived=about["archived"],
            fork=about["fork"],
            parent=(about.get("parent") or {}).get("full_name"),
            private=about["private"],
            language=about["language"],
            license=(about.get("license") or {}).get("spdx_id"),
            size=about["size"],
            stars=about["stargazers_count"],
            pushed_at=about["pushed_at"],
            etag=answer.etag,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise FaultyResponseError(
            f"{name}: GitHub's answer describes no repository ({error})", advice=RETRY_ADVICE
        ) from error
