"""PyGithub, imported in this file only: authentication, addresses and connections, one request at a time.

Parts of PyGithub that are not used:

- its retries handle a single token, wait without a message, and miss a 429 without Retry-After; `pool` and `api` retry;
- its pauses between requests are for a token in a single thread; `pool` paces requests;
- its handling of 301 drops the query: a renamed repository would have no pull requests; `_follow_redirects` keeps it;
- its single connection mixes up the requests of two threads; a `GitHubConnection` is used by a single thread at a time.
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

from core.errors import InputError, MachineError
from miner.github.auth import Credential, GitHubApp
from miner.github.responses import RETRY_ADVICE, FaultyResponseError, GitHubResponse, PageTooLargeError

API_VERSION = "2022-11-28"
"""Of the REST API; later versions have no `merge_commit_sha`."""
MAX_REDIRECTS = 3
_REDIRECT_STATUSES = (301, 302, 307, 308)

Connection = HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass


class GitHubConnection:
    """Connection to GitHub with a credential. Not thread-safe."""

    def __init__(self, server: str, auth: github.Auth.Auth | None, verify: bool | str, timeout: int) -> None:
        self._github = github.Github(
            auth=auth,
            base_url=server,
            verify=verify,
            timeout=timeout,
            user_agent="mergemill",
            per_page=100,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
            api_version=API_VERSION,
        )
        self._requester = self._github.requester
        parts = urlsplit(server)
        kind = _HttpsConnection if parts.scheme == "https" else _HttpConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout, retry=0, verify=verify)

    def get(self, path: str, headers: Mapping[str, str]) -> GitHubResponse:
        """GET a path of the REST API."""
        all_headers = {"Accept": "application/vnd.github+json", **headers}
        answered = self._requester.requestJson("GET", path, headers=all_headers, cnx=self._connection)
        return GitHubResponse(*answered, graphql=False)

    def post_query(self, body: Mapping[str, Any]) -> GitHubResponse:
        """POST a GraphQL query with its variables."""
        url = self._requester.graphql_url
        return GitHubResponse(
            *self._requester.requestJson("POST", url, input=dict(body), cnx=self._connection), graphql=True
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._github.close()


class ConnectionPool:
    """Open connections of all credentials. Thread-safe."""

    def __init__(self, server: str, verify: bool | str, timeout: int) -> None:
        self.server = server
        self.verify = verify
        self.timeout = timeout
        self._idle: dict[Credential, list[GitHubConnection]] = {}
        self._auth: dict[Credential, github.Auth.Auth | None] = {}
        self._renewed: set[Credential] = set()
        self._lock = threading.Lock()

    def send(
        self, credential: Credential, ask: Callable[[GitHubConnection], GitHubResponse], what: str, *, graphql: bool
    ) -> GitHubResponse:
        """Send a request over a free connection.

        Raises:
            PageTooLargeError: no response to a GraphQL query in time.
            FaultyResponseError: the connection failed, or no response to another request in time.
            MachineError: the server's certificate is unknown.
            InputError: the server is at another address.
        """
        line = self._borrow_connection(credential)
        try:
            reply = ask(line)
        except github.GithubException as error:
            # Only an App's request for a token raises these errors.
            line.close()
            return _build_app_reply(error, graphql=graphql)
        except BaseException as error:
            line.close()
            translated = _translate_error(error, what, self.server, graphql=graphql)
            if translated is error:
                raise
            raise translated from error
        with self._lock:
            self._idle.setdefault(credential, []).append(line)
            if reply.status < 400:
                self._renewed.discard(credential)
        return reply

    def renew_token(self, credential: Credential) -> bool:
        """Return whether a new token is worth requesting for an App whose token was rejected: once per response."""
        with self._lock:
            if credential.app is None or credential in self._renewed:
                return False
            self._renewed.add(credential)
            self._auth.pop(credential, None)
            # Open connections still hold the rejected token.
            old = self._idle.pop(credential, [])
        for line in old:
            line.close()
        return True

    def find_secret(self, credential: Credential) -> str | None:
        """Return the current token of a credential that has been used; None when there is none."""
        with self._lock:
            auth = self._auth.get(credential)
        try:
            return auth.token if auth else None
        except (github.GithubException, requests.RequestException):
            # An App's token is being renewed, and the renewal failed.
            return None

    def close(self) -> None:
        """Close all free connections."""
        with self._lock:
            lines = [line for idle in self._idle.values() for line in idle]
            self._idle.clear()
        for line in lines:
            line.close()

    def _borrow_connection(self, credential: Credential) -> GitHubConnection:
        with self._lock:
            if idle := self._idle.get(credential):
                return idle.pop()
            if credential not in self._auth:
                self._auth[credential] = _build_auth(credential)
            auth = self._auth[credential]
        return GitHubConnection(self.server, auth, self.verify, self.timeout)


class _HttpConnection(HTTPRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _follow_redirects(self, super().getresponse)


class _HttpsConnection(HTTPSRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _follow_redirects(self, super().getresponse)


class _AppInstallation(github.Auth.AppInstallationAuth):
    """Installation of an App, whose token is renewed by a single thread only."""

    def __init__(self, app: GitHubApp) -> None:
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


def _build_auth(credential: Credential) -> github.Auth.Auth | None:
    if credential.app:
        return _AppInstallation(credential.app)
    return github.Auth.Token(credential.token.get_secret_value()) if credential.token else None


def _follow_redirects(connection: Connection, respond: Callable[[], RequestsResponse]) -> RequestsResponse:
    """Follow redirects and return the final response; the query string is kept.

    Raises:
        InputError: a redirect leads to another server, which must not receive the token, or in a circle.
    """
    for _ in range(MAX_REDIRECTS):
        response = respond()
        if response.status not in _REDIRECT_STATUSES or connection.verb != "GET" or "location" not in response.headers:
            return response
        here = urlsplit(f"{connection.protocol}://{connection.host}:{connection.port}{connection.url}")
        there = urlsplit(response.headers["location"])
        port = there.port or {"http": 80, "https": 443}.get(there.scheme)
        if there.netloc and (there.scheme, there.hostname, port) != (here.scheme, here.hostname, here.port):
            raise InputError(f"GitHub's API redirects to {there.scheme}://{there.netloc}", advice="see --github-api")
        connection.url = there._replace(scheme="", netloc="", query=there.query or here.query, fragment="").geturl()
    raise InputError("GitHub's API redirects in a circle")


def _translate_error(error: BaseException, what: str, server: str, *, graphql: bool) -> BaseException:
    """Translate a failure without a response; errors that are not from the network are returned unchanged."""
    if isinstance(error, requests.exceptions.SSLError):
        return MachineError(f"the certificate of {server} is unknown: {error}", advice="see --ca-bundle")
    # A timeout within the body arrives as a ConnectionError.
    if isinstance(error, requests.ReadTimeout) or "Read timed out" in str(error):
        return (PageTooLargeError if graphql else FaultyResponseError)(
            f"{what}: no answer from {server} in time", advice=RETRY_ADVICE
        )
    if isinstance(error, requests.RequestException):
        return FaultyResponseError(
            f"{what}: the connection to {server} failed: {type(error).__name__}", advice=RETRY_ADVICE
        )
    # PyGithub raises these for half a JSON document and for an address of another scheme.
    if isinstance(error, ValueError | RuntimeError):
        return InputError(f"{what}: {error}", advice="see --github-api")
    return error


def _build_app_reply(error: github.GithubException, *, graphql: bool) -> GitHubResponse:
    """Build the response for a request whose App token could not be requested, from that failure."""
    message = error.data.get("message") if isinstance(error.data, dict) else error.message
    # An App or installation that does not exist is a bad credential, not a missing repository.
    limited = "rate limit" in str(message).lower() or "retry-after" in (error.headers or {})
    status = 401 if error.status in (403, 404, 422) and not limited else error.status
    return GitHubResponse(status, error.headers or {}, json.dumps({"message": message}), graphql)
