"""GitHub's API as the crawler sees it: a question, and its answer or one of few errors.

Everything else happens here and below: which token asks (`pool`), how long it waits (`budget`), what an answer means
(`replies`), what is tried again. `client` holds the connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from mergemill.errors import InputError, MergemillError
from miner.github.auth import Credential, credentials, no_token
from miner.github.budget import Resource
from miner.github.client import Line, Lines
from miner.github.pool import Clock, Lease, Pool
from miner.github.replies import (
    AGAIN,
    Answer,
    Faulty,
    Reply,
    RestAnswer,
    answer_of,
    check,
    limit_of,
    refusal_of,
)

if TYPE_CHECKING:
    from mergemill.config import Settings

RATE = "rateLimit { limit cost remaining resetAt }"
"""What every query must ask for: it costs nothing and tells what the query did."""
SECONDS = 40
"""Without a byte an answer is given up; GitHub itself gives up after 10."""
ATTEMPTS = 5
"""How often a request is sent before its faults are told."""
LONGEST_PAUSE = 30.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository as REST tells it. `name` is its full name now, `etag` what a later request asks for changes with."""

    node_id: str
    database_id: int
    name: str
    clone_url: str
    default_branch: str
    archived: bool
    fork: bool
    parent: str | None
    """Full name of what it was forked from."""
    private: bool
    language: str | None
    license: str | None
    """SPDX id, as far as GitHub recognised it."""
    size: int
    """KB."""
    stars: int
    pushed_at: str | None
    """ISO 8601 in UTC."""
    etag: str | None


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a token's hour. An Enterprise server without limits tells neither."""

    token: str
    points: int | None = None
    requests: int | None = None
    problem: str = ""
    """Why that is not known."""
    refused: bool = False
    """Whether the token is why."""


class Api:
    """GitHub's API. Thread-safe; a context manager, on leaving which every thread that still waits is sent away."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, first_pause: float = 1.0, timeout: int = SECONDS
    ) -> None:
        """Nothing is asked yet.

        Args:
            settings: the address, tokens, App, CA bundle, patience and concurrency.
            clock: the time, and how to wait.
            first_pause: seconds, at most, before what failed is tried again; then twice as long, and so on.
            timeout: seconds without a byte after which an answer is given up.

        Raises:
            InputError: a token or the App's settings cannot be used.
        """
        self.server = settings.github_api
        self.patience = settings.github_patience
        self.first_pause = first_pause
        self.pool = Pool(credentials(settings), concurrency=settings.github_concurrency, clock=clock)
        bundle = settings.found_ca_bundle()
        self._lines = Lines(self.server, str(bundle) if bundle else True, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.stop()
        self._lines.close()

    def require_token(self, what: str = "mining pull requests") -> None:
        """Raises MachineError when no token is set: GraphQL cannot be asked."""
        if all(seat.credential.anonymous for seat in self.pool.seats):
            raise no_token(what)

    def graphql(self, query: str, variables: Mapping[str, Any] | None = None, *, what: str = "a query") -> Answer:
        """Ask a query, which must contain RATE.

        Args:
            query: one operation.
            variables: of the query.
            what: what is asked for, such as `owner/name`; for people.

        Raises:
            TooMuch: GitHub could not answer in its time; ask for a smaller page. A Transient for who does not care.
            Gone: none of what was asked for exists, or may be seen.
            InputError: GitHub accepts no token any more, the address is not GitHub's, or the query is not understood.
            MachineError: no token is set, or the server's certificate is unknown.
            Transient: a limit lasts longer than the patience, or the network is dead.
        """
        if RATE not in query:
            raise ValueError("the query does not ask for RATE")
        self.require_token(what)
        body = {"query": query, "variables": dict(variables or {})}

        def attempt() -> Answer:
            reply = self._reply(Resource.GRAPHQL, lambda line: line.query(body), what)
            check(reply, what, self.server)
            return answer_of(reply, what, self.server)

        return self._try(attempt)

    def rest(self, path: str, etag: str | None = None, *, what: str = "") -> RestAnswer:
        """GET a path such as `/repos/o/n`. With the `etag` of an earlier answer, 304 when it is still good: free.

        Raises:
            Gone, InputError, MachineError, Transient: as in `graphql`. Works without a token, 60 times an hour.
        """
        what = what or path
        headers = {"If-None-Match": etag} if etag else {}

        def attempt() -> RestAnswer:
            reply = self._reply(Resource.REST, lambda line: line.get(path, dict(headers)), what)
            check(reply, what, self.server)
            return RestAnswer(reply.status, reply.headers.get("etag") or etag, reply.json)

        return self._try(attempt)

    def repository(self, name: str, known: Repository | None = None) -> Repository:
        """What `owner/name` is, also under a name it had before. `known` is given back when nothing has changed.

        Raises:
            Gone: there is none, or none that the tokens may see.
            InputError, MachineError, Transient: as in `rest`.
        """
        answer = self.rest(f"/repos/{quote(name)}", known.etag if known else None, what=name)
        if answer.status == 304 and known:
            return known
        return _repository(answer, name)

    def git_token(self) -> str | None:
        """A token by which git may clone what was asked about; None when nobody in particular asked."""
        accepted = (seat.credential for seat in self.pool.seats if not seat.retired)
        return next((found for credential in accepted if (found := self._lines.secret(credential))), None)

    def left(self) -> list[Left]:
        """What GitHub says is left of each token's hour. Asking costs nothing, waits for nothing and never raises."""
        return [self._left(seat.credential) for seat in self.pool.seats]

    def usage(self) -> dict[str, Any]:
        """What was asked so far: requests, points, seconds waited, and the same for each token."""
        return self.pool.usage()

    def _try(self, attempt: Callable[[], T]) -> T:
        """Do something again after a fault, each time later."""
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS), wait=wait_random_exponential(self.first_pause, LONGEST_PAUSE),
            retry=retry_if_exception_type(Faulty), sleep=self.pool.pause, reraise=True,
        )  # fmt: skip
        result: T = retrying(attempt)
        return result

    def _reply(self, resource: Resource, ask: Callable[[Line], Reply], what: str) -> Reply:
        """One answer that speaks neither of a limit nor of a bad token, whatever tokens and waiting that takes."""
        deadline = self.pool.clock.now() + self.patience
        while True:
            with self.pool.lease(resource, deadline) as lease:
                reply = self._send(lease, ask, what)
                if not (lease.limit or lease.refused):
                    return reply

    def _send(self, lease: Lease, ask: Callable[[Line], Reply], what: str) -> Reply:
        """Ask over a line of the lease's token, and note there what came."""
        credential = lease.seat.credential
        reply = self._lines.use(credential, ask, what, graphql=lease.resource is Resource.GRAPHQL)
        lease.reply, lease.limit, lease.refused = reply, limit_of(reply), refusal_of(reply)
        if lease.refused and self._lines.renew(credential):
            lease.refused = None
            raise Faulty(f"{what}: the token of {credential.label} was refused; it is asked for anew", advice=AGAIN)
        return reply

    def _left(self, credential: Credential) -> Left:
        label = credential.label
        try:
            reply = self._lines.use(credential, lambda line: line.get("/rate_limit", {}), "the limits", graphql=False)
        except MergemillError as error:
            return Left(label, problem=error.line(), refused=isinstance(error, InputError))
        if why := refusal_of(reply):
            return Left(label, problem=why, refused=True)
        if reply.status == 404 and "not enabled" in reply.message:
            return Left(label)
        try:
            resources = reply.json["resources"]
            return Left(label, resources[Resource.GRAPHQL]["remaining"], resources[Resource.REST]["remaining"])
        except (KeyError, TypeError):
            return Left(label, problem=f"{self.server} answers {reply.status} {reply.message}".rstrip())


def _repository(answer: RestAnswer, name: str) -> Repository:
    """Raises Faulty when the answer is no repository."""
    about = answer.data
    try:
        return Repository(
            node_id=about["node_id"], database_id=about["id"], name=about["full_name"], clone_url=about["clone_url"],
            default_branch=about["default_branch"], archived=about["archived"], fork=about["fork"],
            parent=(about.get("parent") or {}).get("full_name"), private=about["private"], language=about["language"],
            license=(about.get("license") or {}).get("spdx_id"), size=about["size"], stars=about["stargazers_count"],
            pushed_at=about["pushed_at"], etag=answer.etag,
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise Faulty(f"{name}: GitHub's answer describes no repository ({error})", advice=AGAIN) from error
