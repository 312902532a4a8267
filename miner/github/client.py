"""PyGithub, and the only file that imports it: authentication, addresses and connections, one request at a time.

What of it is not used, and why:

- its retries know nothing of several tokens, wait without a word, and miss a 429 without Retry-After; `pool` and `api`
  retry;
- its pauses between requests are for one token in one thread; `pool` keeps the pace;
- its 301 forgets the query: a renamed repository would have no pull requests; `_followed` keeps it;
- its one connection mixes up the requests of two threads; a `Line` is lent to one at a time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import github
import jwt
import requests
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, RequestsResponse

from mergemill.errors import InputError, MachineError
from miner.github.auth import App, Credential
from miner.github.replies import AGAIN, Faulty, Reply, TooMuch

API_VERSION = "2022-11-28"
"""Of REST; later ones have no `merge_commit_sha`."""
HOPS = 3
_MOVED = (301, 302, 307, 308)

Connection = HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass


class Line:
    """One connection to GitHub in the name of one credential. For one thread at a time."""

    def __init__(self, server: str, auth: github.Auth.Auth | None, verify: bool | str, timeout: int) -> None:
        self._github = github.Github(
            auth=auth, base_url=server, verify=verify, timeout=timeout, user_agent="mergemill", per_page=100,
            retry=None, seconds_between_requests=None, seconds_between_writes=None, lazy=True, api_version=API_VERSION,
        )  # fmt: skip
        self._requester = self._github.requester
        parts = urlsplit(server)
        kind = _Https if parts.scheme == "https" else _Http
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout, retry=0, verify=verify)

    def get(self, path: str, headers: Mapping[str, str]) -> Reply:
        """GET a path of the REST API."""
        asked = {"Accept": "application/vnd.github+json", **headers}
        answered = self._requester.requestJson("GET", path, headers=asked, cnx=self._connection)
        return Reply(*answered, graphql=False)

    def query(self, body: Mapping[str, Any]) -> Reply:
        """POST a GraphQL query with its variables."""
        url = self._requester.graphql_url
        return Reply(*self._requester.requestJson("POST", url, input=dict(body), cnx=self._connection), graphql=True)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
        self._github.close()


class Lines:
    """The connections of all credentials, kept while they are of use. Thread-safe."""

    def __init__(self, server: str, verify: bool | str, timeout: int) -> None:
        self.server = server
        self.verify = verify
        self.timeout = timeout
        self._idle: dict[Credential, list[Line]] = {}
        self._auth: dict[Credential, github.Auth.Auth | None] = {}
        self._renewed: set[Credential] = set()
        self._lock = threading.Lock()

    def use(self, credential: Credential, ask: Callable[[Line], Reply], what: str, *, graphql: bool) -> Reply:
        """Ask over a free line.

        Raises:
            TooMuch: no answer to a GraphQL query in time.
            Faulty: the connection failed, or no answer to another request in time.
            MachineError: the server's certificate is not known.
            InputError: the server is elsewhere.
        """
        line = self._lent(credential)
        try:
            reply = ask(line)
        except github.GithubException as error:  # only an App's own request for a token makes these
            line.close()
            return _of_app(error, graphql=graphql)
        except BaseException as error:
            line.close()
            told = _told(error, what, self.server, graphql=graphql)
            if told is error:
                raise
            raise told from error
        with self._lock:
            self._idle.setdefault(credential, []).append(line)
            if reply.status < 400:
                self._renewed.discard(credential)
        return reply

    def renew(self, credential: Credential) -> bool:
        """Whether an App's token, refused, is worth asking for anew: once, until an answer comes."""
        with self._lock:
            if credential.app is None or credential in self._renewed:
                return False
            self._renewed.add(credential)
            self._auth.pop(credential, None)
            old = self._idle.pop(credential, [])
        for line in old:
            line.close()
        return True

    def secret(self, credential: Credential) -> str | None:
        """The token that stands behind a credential now, once it has been used; None when there is none to be had."""
        with self._lock:
            auth = self._auth.get(credential)
        try:
            return auth.token if auth else None
        except (github.GithubException, requests.RequestException):  # of an App, on the way to a new one
            return None

    def close(self) -> None:
        """Hang up all that are free."""
        with self._lock:
            lines = [line for idle in self._idle.values() for line in idle]
            self._idle.clear()
        for line in lines:
            line.close()

    def _lent(self, credential: Credential) -> Line:
        with self._lock:
            if idle := self._idle.get(credential):
                return idle.pop()
            if credential not in self._auth:
                self._auth[credential] = _auth(credential)
            auth = self._auth[credential]
        return Line(self.server, auth, self.verify, self.timeout)


class _Http(HTTPRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _followed(self, super().getresponse)


class _Https(HTTPSRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _followed(self, super().getresponse)


class _Installation(github.Auth.AppInstallationAuth):
    """An App's installation, whose token only one thread renews."""

    def __init__(self, app: App) -> None:
        try:
            by_key = github.Auth.AppAuth(app.id, app.key.get_secret_value())
            by_key.create_jwt()
        except (ValueError, TypeError, AssertionError, jwt.PyJWTError):
            raise InputError("the App's key is not a private key (PEM)", advice="see --github-app-key") from None
        super().__init__(by_key, app.installation)
        self._one = threading.Lock()

    @property
    def token(self) -> str:
        with self._one:
            return super().token


def _auth(credential: Credential) -> github.Auth.Auth | None:
    if credential.app:
        return _Installation(credential.app)
    return github.Auth.Token(credential.token.get_secret_value()) if credential.token else None


def _followed(connection: Connection, respond: Callable[[], RequestsResponse]) -> RequestsResponse:
    """The answer at the end of redirections. What was asked for there is what was asked for here, the query included.

    Raises:
        InputError: they lead to another server, which must not see the token, or nowhere.
    """
    for _ in range(HOPS):
        response = respond()
        if response.status not in _MOVED or connection.verb != "GET" or "location" not in response.headers:
            return response
        here = urlsplit(f"{connection.protocol}://{connection.host}:{connection.port}{connection.url}")
        there = urlsplit(response.headers["location"])
        port = there.port or {"http": 80, "https": 443}.get(there.scheme)
        if there.netloc and (there.scheme, there.hostname, port) != (here.scheme, here.hostname, here.port):
            raise InputError(f"GitHub's API sends us to {there.scheme}://{there.netloc}", advice="see --github-api")
        connection.url = there._replace(scheme="", netloc="", query=there.query or here.query, fragment="").geturl()
    raise InputError("GitHub's API sends us round in a circle")


def _told(error: BaseException, what: str, server: str, *, graphql: bool) -> BaseException:
    """What a failure without an answer means; an error that is not the network's stays what it is."""
    if isinstance(error, requests.exceptions.SSLError):
        return MachineError(f"the certificate of {server} is not known here: {error}", advice="see --ca-bundle")
    # What takes too long within the body arrives as a ConnectionError.
    if isinstance(error, requests.ReadTimeout) or "Read timed out" in str(error):
        return (TooMuch if graphql else Faulty)(f"{what}: no answer from {server} in time", advice=AGAIN)
    if isinstance(error, requests.RequestException):
        return Faulty(f"{what}: the connection to {server} failed: {type(error).__name__}", advice=AGAIN)
    if isinstance(error, ValueError | RuntimeError):  # PyGithub's: half a JSON, another scheme
        return InputError(f"{what}: {error}", advice="see --github-api")
    return error


def _of_app(error: github.GithubException, *, graphql: bool) -> Reply:
    """The answer to an App's request for a token, as if it were that to the request it was for."""
    said = error.data.get("message") if isinstance(error.data, dict) else error.message
    # An App or installation that does not exist is a bad credential, not a repository that is not there.
    limited = "rate limit" in str(said).lower() or "retry-after" in (error.headers or {})
    status = 401 if error.status in (403, 404, 422) and not limited else error.status
    return Reply(status, error.headers or {}, json.dumps({"message": said}), graphql)
