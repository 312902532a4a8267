"""HTTP application of a service of episodes: its routes, threads, expiry of episodes, and errors as JSON.

Every service has `GET /health` and `POST /reset`, `/step` and `/evaluate`; each adds routes of its own, and chooses how
bodies are read. What is wrong with a request is one line in `error`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from core.episodes.errors import RefusedRequestError
from core.errors import MergemillError

log = logging.getLogger(__name__)
T = TypeVar("T")
ApiT = TypeVar("ApiT", bound=Starlette)
IDLE_POLL_SECONDS = 1.0
BUG = "the server failed through a bug; its log has the details"


@dataclass(frozen=True)
class EpisodeRoute:
    """A route of a service.

    `answer` gets the body, a value of `body`, or where there is none the parameters of the path.
    """

    method: str
    path: str
    answer: Callable[[Any], Any]
    _: KW_ONLY
    summary: str
    body: type[BaseModel] | None = None
    is_blocking: bool = True
    """Whether it is answered in a thread."""
    returns: Any = dict[str, Any]
    """Type of the answer, for the description of the API."""


@dataclass(frozen=True, kw_only=True)
class ErrorAnswer:
    """Status and content of an answer that reports an error."""

    status: int
    message: str
    advice: str = ""
    headers: Mapping[str, str] | None = None
    further: Mapping[str, Any] = field(default_factory=dict)

    def render(self) -> JSONResponse:
        """Return the answer."""
        return JSONResponse({"error": self.message, "advice": self.advice, **self.further}, self.status, self.headers)


@dataclass(frozen=True, kw_only=True)
class EpisodeBodies:
    """Types of the bodies of the common routes."""

    reset: type[BaseModel]
    step: type[BaseModel]
    evaluate: type[BaseModel]


class EpisodeApplication(ABC, Generic[ApiT]):
    """Application of a service; a subclass has the service's own routes, bodies and errors.

    Args:
        threads: do blocking work on episodes.
    """

    bodies: ClassVar[EpisodeBodies]
    statuses: ClassVar[Mapping[type[Exception], int]]
    """Status of an error by its class; the first that fits. Requests that are refused have a status of their own."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads

    @abstractmethod
    def make_api(self) -> ApiT:
        """Return an application without routes."""

    @abstractmethod
    def add_route(self, api: ApiT, route: EpisodeRoute) -> None:
        """Add a route, whose request is answered by `answer`."""

    @abstractmethod
    def list_further_routes(self) -> list[EpisodeRoute]:
        """Return the routes that the service has besides the common ones."""

    @abstractmethod
    def show_health(self, _: Any) -> Any:
        """Return the numbers of the service."""

    @abstractmethod
    def reset(self, body: Any) -> Any:
        """Begin an episode."""

    @abstractmethod
    def step(self, body: Any) -> Any:
        """Take an action."""

    @abstractmethod
    def evaluate(self, body: Any) -> Any:
        """Return the reward of an episode."""

    @abstractmethod
    def describe_http_error(self, request: Request, error: HTTPException) -> ErrorAnswer:
        """Return the answer to a request that no route takes."""

    def describe_failure(self, message: str) -> Mapping[str, Any]:
        """Return the fields that an answer has besides `error` where the service failed."""
        del message
        return {}

    def close_idle(self) -> None:
        """Close the episodes that nobody has touched for long; none, where episodes don't expire."""

    def build_api(self) -> ApiT:
        """Return the application of all routes, with errors as JSON."""
        api = self.make_api()
        bodies = self.bodies
        routes = [
            EpisodeRoute("GET", "/health", self.show_health, summary="Describe the server", is_blocking=False),
            EpisodeRoute("POST", "/reset", self.reset, summary="Begin an episode", body=bodies.reset),
            EpisodeRoute("POST", "/step", self.step, summary="Answer a turn of the agent", body=bodies.step),
            EpisodeRoute("POST", "/evaluate", self.evaluate, summary="Judge an episode", body=bodies.evaluate),
        ]
        # In a description of the API, what describes the service comes first.
        for route in sorted([*routes, *self.list_further_routes()], key=lambda route: route.is_blocking):
            self.add_route(api, route)
        for kind in (HTTPException, MergemillError, *self.statuses, Exception):
            api.add_exception_handler(kind, self.answer_error)
        return api

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of blocking work, done in a thread of the service."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def answer(self, route: EpisodeRoute, given: Any) -> Any:
        """Return the answer of a route to a body or to parameters of a path."""
        return await self.run(partial(route.answer, given)) if route.is_blocking else route.answer(given)

    @contextlib.asynccontextmanager
    async def live(self, _: Starlette) -> AsyncIterator[None]:
        """Close idle episodes until the end of the block."""
        watch = asyncio.create_task(self._watch_idle())
        try:
            yield
        finally:
            watch.cancel()

    async def answer_error(self, request: Request, error: Exception) -> JSONResponse:
        """Return an error as JSON: one line and what to do. 503 is for what may succeed when it is sent again."""
        return self.describe_error(request, error).render()

    def describe_error(self, request: Request, error: Exception) -> ErrorAnswer:
        """Return status and content of the answer to a request that raised an error."""
        if isinstance(error, HTTPException):
            return self.describe_http_error(request, error)
        advice = error.advice if isinstance(error, MergemillError) else ""
        if isinstance(error, RefusedRequestError):
            headers = {"retry-after": "1"} if error.status == 429 else None
            return ErrorAnswer(status=error.status, message=str(error), advice=advice, headers=headers)
        status = next((status for kind, status in self.statuses.items() if isinstance(error, kind)), None)
        message = str(error)
        if status is None:
            log.error("%s %s failed through a bug", request.method, request.url.path, exc_info=error)
            status, message = 500, BUG
        further = self.describe_failure(message) if status >= 500 else {}
        return ErrorAnswer(status=status, message=message, advice=advice, further=further)

    async def _watch_idle(self) -> None:
        while True:
            await asyncio.sleep(IDLE_POLL_SECONDS)
            try:
                await self.run(self.close_idle)
            except Exception:
                log.exception("closing idle episodes failed through a bug")
