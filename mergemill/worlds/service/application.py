"""HTTP application of a service of worlds, and of MCP."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from core.episodes.errors import RefusedRequestError
from core.errors import InputError, MergemillError
from core.validation import describe_invalid
from mergemill.web.episode_application import EpisodeApplication, EpisodeBodies, EpisodeRoute, ErrorAnswer
from mergemill.web.request_guard import AccessRules, RequestGuard
from mergemill.worlds.service.episodes import EpisodeRequest, WorldEpisodes
from mergemill.worlds.service.protocol import PATH, EpisodeProtocol
from mergemill.worlds.service.responses import (
    CloseResponse,
    EvaluateResponse,
    HealthResponse,
    ResetResponse,
    StateResponse,
    StepResponse,
)
from worlds.rewards import RewardMode
from worlds.scenario_run import MAX_STEPS, InteractionMode

Body = TypeVar("Body", bound=BaseModel)
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


class WorldApplication(EpisodeApplication[Starlette]):
    """Routes of a service of worlds, and the threads that work on its episodes."""

    bodies: ClassVar[EpisodeBodies] = EpisodeBodies(reset=ResetBody, step=StepBody, evaluate=EpisodeBody)
    statuses: ClassVar[Mapping[type[Exception], int]] = {InputError: 400, MergemillError: 503}

    def __init__(self, episodes: WorldEpisodes, rules: AccessRules) -> None:
        self._pool = ThreadPoolExecutor(episodes.limit + 8, thread_name_prefix="episode")
        super().__init__(self._pool)
        self._episodes = episodes
        self._protocol = EpisodeProtocol(episodes, self.run)
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
                Mount("/", RequestGuard(self.build_api(), self._rules)),
            ],
            lifespan=self.live,
        )

    @contextlib.asynccontextmanager
    async def live(self, application: Starlette) -> AsyncIterator[None]:
        """Serve MCP and close idle episodes until the end of the block, then give the threads up."""
        async with super().live(application), self._protocol.open():
            yield
        self._pool.shutdown(wait=False, cancel_futures=True)

    def make_api(self) -> Starlette:
        """Return an application without routes."""
        return Starlette()

    def add_route(self, api: Starlette, route: EpisodeRoute) -> None:
        """Add a route; bodies are read whatever their type is called."""

        async def endpoint(request: Request) -> Response:
            given = request.path_params if route.body is None else await _read_body(request, route.body)
            answer = await self.answer(route, given)
            return JSONResponse(answer.model_dump() if isinstance(answer, BaseModel) else answer)

        api.add_route(route.path, endpoint, methods=[route.method])

    def list_further_routes(self) -> list[EpisodeRoute]:
        """Return the routes of worlds, and of the state and the end of an episode."""
        return [
            EpisodeRoute("GET", "/worlds", self.list_worlds, summary="List the worlds", is_blocking=False),
            EpisodeRoute("GET", "/worlds/{name}", self.show_world, summary="Show a world", is_blocking=False),
            EpisodeRoute("POST", "/state", self.show_state, summary="Show the state", body=EpisodeBody),
            EpisodeRoute("POST", "/close", self.close, summary="End an episode", body=EpisodeBody),
        ]

    def show_health(self, _: Any) -> HealthResponse:
        """Return the numbers of the service."""
        return self._episodes.count()

    def list_worlds(self, _: Any) -> dict[str, Any]:
        """Return a summary of each world."""
        catalog = self._episodes.catalog
        return {"worlds": [catalog[name].summarise() for name in sorted(catalog)]}

    def show_world(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the facts that an agent may learn of a world."""
        return self._episodes.find_world(parameters["name"]).describe()

    def reset(self, body: ResetBody) -> ResetResponse:
        """Open an episode."""
        return self._episodes.reset(EpisodeRequest(**dict(body)))

    def step(self, body: StepBody) -> StepResponse:
        """Take an action, or call a tool."""
        # An action may be null, so it counts as given by its presence in the body.
        has_action = "action" in body.model_fields_set
        if has_action == (body.tool is not None) or (has_action and body.arguments is not None):
            raise RefusedRequestError("give tool and arguments, or action", status=400)
        if body.tool is None:
            return self._episodes.act(body.episode, body.action, body.number)
        return self._episodes.call(body.episode, body.tool, body.arguments or {}, body.number)

    def show_state(self, body: EpisodeBody) -> StateResponse:
        """Return the state of an episode."""
        return self._episodes.get_state(body.episode)

    def evaluate(self, body: EpisodeBody) -> EvaluateResponse:
        """Return reward and checks of the present state."""
        return self._episodes.evaluate(body.episode)

    def close(self, body: EpisodeBody) -> CloseResponse:
        """End an episode."""
        self._episodes.close_episode(body.episode)
        return CloseResponse(episode=body.episode)

    def close_idle(self) -> None:
        """Close the episodes that nobody has touched for long."""
        self._episodes.table.close_idle()

    def describe_http_error(self, request: Request, error: HTTPException) -> ErrorAnswer:
        """Return the answer to a request that no route takes."""
        advice = "GET /worlds lists what is served" if error.status_code == 404 else ""
        message = f"there is no {request.method} {request.url.path}" if error.status_code == 404 else error.detail
        return ErrorAnswer(status=error.status_code, message=message, advice=advice, headers=error.headers)

    def describe_failure(self, message: str) -> Mapping[str, Any]:
        """Return the fields of an answer where the infrastructure failed, which is no reward of 0."""
        return {"reward": None, "infrastructure_error": message}


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
        raise RefusedRequestError(describe_invalid(error.errors(), "the body"), status=400) from None
