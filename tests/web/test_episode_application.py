"""What the HTTP applications of all services of episodes share, with the smallest episodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from core.episodes.table import EpisodeLimits, EpisodeTable
from core.errors import InputError, MachineError, Transient
from mergemill.web.episode_application import (
    BUG,
    EpisodeApplication,
    EpisodeBodies,
    EpisodeRoute,
    ErrorAnswer,
)
from tests.core.episodes.counters import FAIL, CounterPlayer


class Body(BaseModel):
    episode: str = ""
    action: int = 0
    number: int | None = None


class CounterApplication(EpisodeApplication[Starlette]):
    bodies: ClassVar[EpisodeBodies] = EpisodeBodies(reset=Body, step=Body, evaluate=Body)
    statuses: ClassVar[Mapping[type[Exception], int]] = {InputError: 400, Transient: 503}

    def __init__(self, threads: ThreadPoolExecutor, limits: EpisodeLimits) -> None:
        super().__init__(threads)
        self.table = EpisodeTable(CounterPlayer(), limits)

    def make_api(self) -> Starlette:
        return Starlette(lifespan=self.live)

    def add_route(self, api: Starlette, route: EpisodeRoute) -> None:
        async def endpoint(request: Request) -> Response:
            given = request.path_params if route.body is None else route.body(**await request.json())
            return JSONResponse(await self.answer(route, given))

        api.add_route(route.path, endpoint, methods=[route.method])

    def list_further_routes(self) -> list[EpisodeRoute]:
        return [EpisodeRoute("GET", "/errors/{name}", self.fail, summary="Fail")]

    def show_health(self, _: Any) -> dict[str, Any]:
        return {"episodes": self.table.count_open()}

    def reset(self, body: Body) -> dict[str, Any]:
        return {"episode": self.table.reset(body.action, body.episode or None).id}

    def step(self, body: Body) -> dict[str, Any]:
        return {"total": self.table.step(body.episode, body.action, body.number)}

    def evaluate(self, body: Body) -> dict[str, Any]:
        return {"total": self.table.evaluate(body.episode)}

    def close_idle(self) -> None:
        self.table.close_idle()

    def fail(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        kinds = {"input": InputError, "machine": MachineError}
        if parameters["name"] not in kinds:
            raise RuntimeError("a bug")
        raise kinds[parameters["name"]]("it failed", advice="try another")

    def describe_http_error(self, request: Request, error: HTTPException) -> ErrorAnswer:
        return ErrorAnswer(status=error.status_code, message=f"no {request.url.path}")

    def describe_failure(self, message: str) -> Mapping[str, Any]:
        return {"cause": message}


def post(client: TestClient, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = client.post(path, json=body)
    return answer.status_code, answer.json()


def test_episodes_over_the_common_routes() -> None:
    with (
        ThreadPoolExecutor(2) as threads,
        TestClient(CounterApplication(threads, EpisodeLimits()).build_api()) as client,
    ):
        assert post(client, "/reset", episode="a", action=5) == (200, {"episode": "a"})
        assert post(client, "/step", episode="a", action=1, number=0) == (200, {"total": 6})
        assert post(client, "/step", episode="a", action=1, number=0) == (200, {"total": 6})
        assert post(client, "/evaluate", episode="a") == (200, {"total": 6})
        assert client.get("/health").json() == {"episodes": 1}
        assert post(client, "/step", episode="a", action=1, number=9) == (
            409,
            {"error": "there is no action 9", "advice": ""},
        )
        assert post(client, "/step", episode="a", action=FAIL) == (
            503,
            {"error": "the step failed", "advice": "", "cause": "the step failed"},
        )


@pytest.mark.parametrize(
    ("path", "status", "content"),
    [
        ("/errors/input", 400, {"error": "it failed", "advice": "try another"}),
        ("/errors/machine", 500, {"error": BUG, "advice": "try another", "cause": BUG}),
        ("/errors/bug", 500, {"error": BUG, "advice": "", "cause": BUG}),
        ("/nowhere", 404, {"error": "no /nowhere", "advice": ""}),
    ],
)
def test_an_error_is_one_line_of_json(path: str, status: int, content: dict[str, Any]) -> None:
    with ThreadPoolExecutor(2) as threads:
        api = CounterApplication(threads, EpisodeLimits()).build_api()
        answer = TestClient(api, raise_server_exceptions=False).get(path)
    assert (answer.status_code, answer.json()) == (status, content)


def test_a_full_server_names_the_pause() -> None:
    with ThreadPoolExecutor(2) as threads:
        client = TestClient(CounterApplication(threads, EpisodeLimits(most_open=1)).build_api())
        client.post("/reset", json={})
        answer = client.post("/reset", json={})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


def test_idle_episodes_are_closed_while_the_application_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mergemill.web.episode_application.IDLE_POLL_SECONDS", 0.02)
    with ThreadPoolExecutor(2) as threads:
        application = CounterApplication(threads, EpisodeLimits(idle_seconds=0.1))
        with TestClient(application.build_api()) as client:
            post(client, "/reset", episode="a")
            deadline = time.monotonic() + 10
            while client.get("/health").json()["episodes"]:
                assert time.monotonic() < deadline
                time.sleep(0.02)
