"""The real service of worlds over HTTP, in a thread."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from backends.sandbox.docker import DockerSandbox
from core.sockets import bind_socket
from mergemill.worlds.service.application import WorldApplication
from mergemill.worlds.service.catalog import OfferedWorld, load_catalog
from mergemill.worlds.service.episodes import WorldEpisodes
from mergemill.worlds.service.server import make_rules
from worlds.definitions import ScenarioDefinition, WorldDefinition
from worlds.program.analysis import analyse_program
from worlds.server.host import WorldHost
from worlds.server.limits import ServerLimits
from worlds.server.service import WorldServer, open_world_server
from worlds.users import UserFactory, make_scripted_user

LIMITS = ServerLimits(call_seconds=1.5, check_seconds=1.5, memory_mb=1024, process_mb=192)


@dataclass
class RunningService:
    """A service and the ways to reach it."""

    url: str
    table: WorldEpisodes
    host: WorldHost
    token: str | None = None

    def send(
        self, path: str, body: object = None, *, raw: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Return status and JSON of a request, or `{"text"}`: a POST where there is a body."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        given = {"authorization": f"Bearer {self.token}"} if self.token else {}
        with closing(connection):
            connection.request("GET" if data is None else "POST", path, data, given if headers is None else headers)
            answer = connection.getresponse()
            text = answer.read()
        if answer.headers.get_content_type() != "application/json":
            return answer.status, {"text": text.decode()}
        return answer.status, json.loads(text)

    def ask(self, path: str, **body: object) -> dict[str, Any]:
        """Return the answer to a POST that must succeed."""
        status, answer = self.send(path, body)
        assert status == 200, answer
        return answer


def offer(definition: WorldDefinition, *scenarios: ScenarioDefinition) -> dict[str, OfferedWorld]:
    """Return a catalog of one world."""
    analysis = analyse_program(definition.program)
    named = {scenario.name: scenario for scenario in scenarios}
    return {definition.name: OfferedWorld(definition=definition, analysis=analysis, scenarios=named)}


@contextmanager
def serve_worlds(
    open_server: Callable[[], AbstractContextManager[WorldServer]],
    *,
    catalog: dict[str, OfferedWorld] | None = None,
    limit: int = 80,
    idle_seconds: float = 600.0,
    token: str | None = None,
    make_user: UserFactory | None = make_scripted_user,
) -> Iterator[RunningService]:
    """Serve worlds, those that ship where none are given; yield the service."""
    host = WorldHost(open_server)
    worlds = load_catalog(()) if catalog is None else catalog
    table = WorldEpisodes(worlds, host, limit=limit, idle_seconds=idle_seconds, make_user=make_user)
    application = WorldApplication(table, make_rules("127.0.0.1", token)).build()
    config = uvicorn.Config(application, log_config=None, lifespan="on", ws="none", timeout_graceful_shutdown=2)
    with closing(table), closing(bind_socket("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield RunningService(f"http://127.0.0.1:{listener.getsockname()[1]}", table, host, token)
        finally:
            server.should_exit = True
            thread.join()


def open_in_container(sandbox: DockerSandbox, image: str) -> Callable[[], AbstractContextManager[WorldServer]]:
    """Return what starts a server of worlds in a container."""
    return lambda: open_world_server(sandbox, image, LIMITS)


def solve(act: Callable[[str, dict[str, Any]], dict[str, Any]], scenario: ScenarioDefinition) -> None:
    """Make the calls of a scenario's solution by `act(tool, arguments)`, which returns the observation."""
    results: list[dict[str, Any]] = []
    for call in scenario.solution or ():
        results.append(act(call.tool, fill_results(call.arguments, results)))
        assert results[-1]["success"] is True, (call, results[-1])


def fill_results(value: Any, results: Sequence[dict[str, Any]]) -> Any:
    """Return an argument with what it takes from earlier results."""
    if isinstance(value, Mapping) and "$result" in value:
        number, *keys = value["$result"]
        result: Any = results[number]
        for key in keys:
            result = result[key]
        return result
    if isinstance(value, Mapping):
        return {name: fill_results(item, results) for name, item in value.items()}
    return [fill_results(item, results) for item in value] if isinstance(value, list) else value
