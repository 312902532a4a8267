"""HTTP application of a server of simulated environments. The routes are thin: `simulators.environment` decides all."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import Body, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import CancelledRunError, InputError, MergemillError, Transient, UsageError
from core.validation import describe_invalid
from mergemill import __version__
from mergemill.web.episode_application import EpisodeApplication, EpisodeBodies, EpisodeRoute, ErrorAnswer
from mergemill.web.request_guard import AccessRules, RequestGuard
from simulators.environment.agent_turn import AgentTurn, parse_agent_text, read_agent_calls
from simulators.environment.calls import PlayerError
from simulators.environment.episode_player import ResetRequest
from simulators.environment.service import EpisodeService

OPEN_PATH = "/health"
"""Path that needs no token."""
MISSING_TOKEN = ErrorAnswer(status=401, message="the token is missing or wrong", advice="Authorization: Bearer TOKEN")


class EpisodeResetBody(BaseModel):
    """Which episode begins."""

    model_config = ConfigDict(extra="forbid")
    task: str | None = Field(None, description="Id or name of a task, see /tasks.")
    seed: int | None = Field(None, description="A number: equal ones give equal beginnings.")
    group: int = Field(0, ge=0, description="Environments of a group get equal beginnings.")
    groups: int | None = Field(None, ge=1, description="Number of groups; default: --episode-groups.")
    episode: int | None = Field(None, ge=0, description="Number among those of the environment; default: the next.")
    env_id: str | int = Field("", description="Name of the environment.")


class EpisodeStepBody(BaseModel):
    """A turn of the agent: its text, or text and calls that were parsed before."""

    model_config = ConfigDict(extra="forbid")
    episode: str
    text: str | None = Field(None, description="What the agent wrote, calls in <tool_call>.")
    tool_calls: list[dict[str, Any]] | None = Field(None, description="Calls, in OpenAI's form or {name, arguments}.")
    turn: int | None = Field(None, ge=0, description="Number of the turn, from 0, so that it can be sent again.")
    context_tokens: int | None = Field(None, ge=0, description="Tokens of the agent's context with this turn.")

    @model_validator(mode="after")
    def _check_content(self) -> EpisodeStepBody:
        if self.text is None and self.tool_calls is None:
            raise ValueError("give text, tool_calls, or both")
        return self

    def read_turn(self) -> AgentTurn:
        """Return the turn."""
        if self.tool_calls:
            return read_agent_calls(self.text or "", self.tool_calls)
        return parse_agent_text(self.text or "")


class EvaluateBody(BaseModel):
    """Which episode is evaluated."""

    model_config = ConfigDict(extra="forbid")
    episode: str


class SimulationApplication(EpisodeApplication[FastAPI]):
    """Routes of a server of simulated environments.

    Args:
        service: the episodes.
        threads: run their steps.
        rules: hosts and token of the server.
    """

    bodies: ClassVar[EpisodeBodies] = EpisodeBodies(reset=EpisodeResetBody, step=EpisodeStepBody, evaluate=EvaluateBody)
    statuses: ClassVar[Mapping[type[Exception], int]] = {
        UsageError: 400,
        InputError: 404,
        CancelledRunError: 503,
        Transient: 503,
        PlayerError: 503,
        MergemillError: 500,
    }

    def __init__(self, service: EpisodeService, threads: Executor, rules: AccessRules) -> None:
        super().__init__(threads)
        self._service = service
        self._rules = rules

    def build(self) -> ASGIApp:
        """Return the ASGI application."""
        return RequestGuard(TokenGuard(self.build_api(), self._rules), self._rules)

    def make_api(self) -> FastAPI:
        """Return an application without routes, which describes itself at `/openapi.json`."""
        api = FastAPI(
            title="mergemill simulated environment",
            version=__version__,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        api.add_exception_handler(RequestValidationError, self.answer_error)
        return api

    def add_route(self, api: FastAPI, route: EpisodeRoute) -> None:
        """Add a route, whose parameters and body FastAPI reads and describes."""

        async def endpoint(**given: Any) -> Any:
            return await self.answer(route, given if route.body is None else given["body"])

        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, kind, annotation=str) for name in re.findall(r"{(\w+)}", route.path)]
        if route.body is not None:
            parameters.append(inspect.Parameter("body", kind, annotation=Annotated[route.body, Body()]))
        signature = inspect.Signature(parameters, return_annotation=route.returns)
        endpoint.__signature__ = signature  # type: ignore[attr-defined] # FastAPI reads it
        name = route.answer.__name__.removeprefix("show_").removeprefix("list_")
        api.add_api_route(route.path, endpoint, methods=[route.method], summary=route.summary, name=name)

    def list_further_routes(self) -> list[EpisodeRoute]:
        """Return the routes of tasks and of the record of an episode."""
        return [
            EpisodeRoute(
                "GET",
                "/tasks",
                self.list_tasks,
                summary="List the tasks",
                is_blocking=False,
                returns=list[dict[str, Any]],
            ),
            EpisodeRoute("GET", "/episodes/{episode}", self.show, summary="Show the record of an episode"),
        ]

    def show_health(self, _: Any) -> dict[str, Any]:
        """Return the description of the server."""
        return self._service.describe()

    def list_tasks(self, _: Any) -> list[dict[str, Any]]:
        """Return the samples."""
        return self._service.list_tasks()

    def reset(self, body: EpisodeResetBody) -> dict[str, Any]:
        """Begin an episode."""
        return self._service.reset(ResetRequest(**{**body.model_dump(), "env_id": str(body.env_id)}))

    def step(self, body: EpisodeStepBody) -> dict[str, Any]:
        """Return the environment's answer to a turn."""
        return self._service.step(body.episode, body.read_turn(), number=body.turn, context_tokens=body.context_tokens)

    def evaluate(self, body: EvaluateBody) -> dict[str, Any]:
        """Return the reward of an episode, which ends by it."""
        return self._service.evaluate(body.episode)

    def show(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the record of an episode."""
        return self._service.get(parameters["episode"])

    def describe_http_error(self, request: Request, error: HTTPException) -> ErrorAnswer:
        """Return the answer to a request that no route takes."""
        del request
        return ErrorAnswer(status=error.status_code, message=str(error.detail))

    def describe_error(self, request: Request, error: Exception) -> ErrorAnswer:
        """Return status and content of the answer to a request that raised an error, or whose body is invalid."""
        if isinstance(error, RequestValidationError):
            return ErrorAnswer(status=400, message=describe_invalid(error.errors(), "the body", outer=1))
        return super().describe_error(request, error)


@dataclass(frozen=True)
class TokenGuard:
    """ASGI middleware that answers requests without the token, where there is one; OPEN_PATH needs none."""

    app: ASGIApp
    rules: AccessRules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        answer = self.app if self._accepts(scope) else MISSING_TOKEN.render()
        await answer(scope, receive, send)

    def _accepts(self, scope: Scope) -> bool:
        if scope["type"] != "http" or self.rules.token is None or scope["path"] == OPEN_PATH:
            return True
        return self.rules.accepts_token(Headers(scope=scope).get("authorization", ""))
