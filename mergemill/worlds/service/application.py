"""HTTP application of a service of worlds. Answers are JSON; the problem with a request is a line in `error`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from core.errors import InputError, MergemillError
from mergemill.web.request_guard import AccessRules, RequestGuard
from mergemill.worlds.service.episodes import EpisodeRequest, EpisodeTable, RefusedRequestError
from mergemill.worlds.service.protocol import PATH, EpisodeProtocol
from mergemill.worlds.service.responses import (
    CloseResponse,
    EvaluateResponse,
    ResetResponse,
    StateResponse,
    StepResponse,
)
from worlds.rewards import RewardMode
from worlds.scenario_run import MAX_STEPS, InteractionMode

log = logging.getLogger(__name__)
T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)
IDLE_POLL_SECONDS = 1.0
EpisodeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
MOST_STEPS = 1000
"""Largest number of actions that an episode may be given."""


class RequestBody(BaseModel):
    """Body of a request; unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")


class ResetBody(RequestBody):
    """Fields that `POST /reset` takes."""

    world: str
    scenario: str | None = None
    seed: StrictInt = 0
    mode: InteractionMode = InteractionMode.NON_CONVERSATIONAL
    reward: RewardMode = RewardMode.SHARE
    max_steps: StrictInt = Field(MAX_STEPS, ge=1, le=MOST_STEPS)
    episode: EpisodeName | None = None


class StepBody(RequestBody):
    """Fields that `POST /step` takes: `tool` and `arguments`, or `action`."""

    episode: str
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    action: Any = None
    number: StrictInt | None = None


class EpisodeBody(RequestBody):
    """Fields that the requests about an episode take."""

    episode: str


class WorldApplication:
    """Routes of a service, and the threads that work on its episodes."""

    def __init__(self, table: EpisodeTable, rules: AccessRules) -> None:
        self._table = table
        self._threads = ThreadPoolExecutor(table.limit + 8, thread_name_prefix="episode")
        self._protocol = EpisodeProtocol(table, self.run)
        self._rules = rules

    def build(self) -> ASGIApp:
        """Return the ASGI application; it needs its lifespan."""
        # An agent gets the address of its episode, never the token.
        open_rules = AccessRules(hosts=self._rules.hosts, token=None, protects_reading=False)
        agents = RequestGuard(self._protocol.handle, open_rules)
        return Starlette(
            routes=[
                Route(PATH, agents),
                Mount(PATH, agents),
                Mount("/", RequestGuard(self._build_api(), self._rules)),
            ],
            lifespan=self._live,
        )

    async def run(self, work: Callable[[], T]) -> T:
        """Return the value that blocking work gives, done in a thread of the service."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @contextlib.asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[None]:
        watch = asyncio.create_task(self._close_idle())
        async with self._protocol.open():
            yield
        watch.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(IDLE_POLL_SECONDS)
            try:
                await self.run(self._table.close_idle)
            except Exception:
                log.exception("closing idle episodes failed through a bug")

    def _build_api(self) -> Starlette:
        posts: Mapping[str, Callable[[Request], Awaitable[BaseModel]]] = {
            "/reset": self._reset,
            "/step": self._step,
            "/state": self._show_state,
            "/evaluate": self._evaluate,
            "/close": self._close,
        }
        return Starlette(
            routes=[
                Route("/health", self._show_health, methods=["GET"]),
                Route("/worlds", self._list_worlds, methods=["GET"]),
                Route("/worlds/{name}", self._show_world, methods=["GET"]),
                *(Route(path, _make_endpoint(answer), methods=["POST"]) for path, answer in posts.items()),
            ],
            exception_handlers={MergemillError: _answer_error, HTTPException: _answer_error, Exception: _answer_error},
        )

    async def _show_health(self, _: Request) -> Response:
        return JSONResponse(self._table.count().model_dump())

    async def _list_worlds(self, _: Request) -> Response:
        worlds = [self._table.catalog[name].summarise() for name in sorted(self._table.catalog)]
        return JSONResponse({"worlds": worlds})

    async def _show_world(self, request: Request) -> Response:
        return JSONResponse(self._table.find_world(request.path_params["name"]).describe())

    async def _reset(self, request: Request) -> ResetResponse:
        body = await _read_body(request, ResetBody)
        return await self.run(lambda: self._table.reset(EpisodeRequest(**dict(body))))

    async def _step(self, request: Request) -> StepResponse:
        body = await _read_body(request, StepBody)
        has_action = "action" in body.model_fields_set
        if has_action == (body.tool is not None) or (has_action and body.arguments is not None):
            raise RefusedRequestError("give tool and arguments, or action", status=400)
        tool = body.tool
        if tool is None:
            return await self.run(lambda: self._table.act(body.episode, body.action, body.number))
        return await self.run(lambda: self._table.call(body.episode, tool, body.arguments or {}, body.number))

    async def _show_state(self, request: Request) -> StateResponse:
        body = await _read_body(request, EpisodeBody)
        return await self.run(lambda: self._table.get_state(body.episode))

    async def _evaluate(self, request: Request) -> EvaluateResponse:
        body = await _read_body(request, EpisodeBody)
        return await self.run(lambda: self._table.evaluate(body.episode))

    async def _close(self, request: Request) -> CloseResponse:
        body = await _read_body(request, EpisodeBody)
        await self.run(lambda: self._table.close_episode(body.episode))
        return CloseResponse(episode=body.episode)


def _make_endpoint(answer: Callable[[Request], Awaitable[BaseModel]]) -> Callable[..., Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return JSONResponse((await answer(request)).model_dump())

    return endpoint


async def _read_body(request: Request, kind: type[Body]) -> Body:
    """Return the body of a request.

    Raises:
        RefusedRequestError: it is not a JSON object with these fields.
    """
    try:
        value = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise RefusedRequestError(f"the body is no JSON: {error}", status=400) from None
    if not isinstance(value, dict):
        raise RefusedRequestError("the body is no JSON object", status=400)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise RefusedRequestError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", status=400) from None


async def _answer_error(request: Request, error: Exception) -> Response:
    """Return an error as JSON. A failure of the infrastructure is not a reward of 0."""
    if isinstance(error, HTTPException):
        advice = "GET /worlds lists what is served" if error.status_code == 404 else ""
        message = f"there is no {request.method} {request.url.path}" if error.status_code == 404 else error.detail
        return JSONResponse({"error": message, "advice": advice}, error.status_code, error.headers)
    if isinstance(error, RefusedRequestError):
        headers = {"retry-after": "1"} if error.status == 429 else None
        return JSONResponse({"error": str(error), "advice": error.advice}, error.status, headers)
    if isinstance(error, InputError):
        return JSONResponse({"error": str(error), "advice": error.advice}, 400)
    if isinstance(error, MergemillError):
        failure = {"reward": None, "infrastructure_error": str(error)}
        return JSONResponse({"error": str(error), "advice": error.advice, **failure}, 503)
    log.error("%s %s failed through a bug", request.method, request.url.path, exc_info=error)
    failure = {"reward": None, "infrastructure_error": "the server failed through a bug; its log has the details"}
    return JSONResponse({"error": failure["infrastructure_error"], "advice": "", **failure}, 500)
