"""Both clients of episodes send a request again where another answer may come, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mergemill_client.episode_requests import EpisodeConnection
from mergemill_client.errors import ClientError
from mergemill_client.simulated.environment import SimulatedConnection
from mergemill_client.worlds import WorldConnection, WorldNotFoundError, WorldUnavailableError

from tests.grading_server import serve_answers

JSON, TEXT = {"content-type": "application/json"}, {"content-type": "text/plain; charset=utf-8"}
FULL = (429, JSON, {"error": "2 episodes are open"})
DONE = (200, JSON, {"total": 1})


def open_worlds(url: str) -> EpisodeConnection:
    return WorldConnection(url, "secret", patience=5.0)


def open_simulated(url: str) -> EpisodeConnection:
    return SimulatedConnection(url, "secret", 10.0, 5.0)


CLIENTS = pytest.mark.parametrize("connect", [open_worlds, open_simulated])


@CLIENTS
@pytest.mark.parametrize("first", [FULL, ("reset", {}, b""), (200, JSON, b"no json"), (200, JSON, [1])])
def test_a_request_is_sent_again(connect: Callable[[str], EpisodeConnection], first: Any) -> None:
    with serve_answers(first, DONE) as server:
        connection = connect(server.url)
        assert connection.request("POST", "/step", {"number": 1}) == {"total": 1}
        assert server.bodies == [{"number": 1}, {"number": 1}]
        connection.close()


@CLIENTS
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((409, JSON, {"error": "it is busy"}), "it is busy"),
        ((401, TEXT, b"this server needs its token\n"), "this server needs its token"),
        ((400, {"content-type": "text/html"}, b"<html>"), "status 400"),
        ((400, JSON, {"x": 1}), "status 400"),
    ],
)
def test_a_mistake_is_a_line_at_once(
    connect: Callable[[str], EpisodeConnection], answer: tuple[int, dict[str, str], Any], problem: str
) -> None:
    with serve_answers(answer) as server:
        connection = connect(server.url)
        with pytest.raises(ClientError) as raised:
            connection.request("POST", "/step", {})
        assert str(raised.value) == f"{server.url}: {problem}"
        assert len(server.bodies) == 1
        connection.close()


def test_each_client_has_errors_and_statuses_of_its_own() -> None:
    with serve_answers((503, JSON, {"error": "no engine"})) as server:
        worlds = open_worlds(server.url)
        with pytest.raises(WorldUnavailableError, match="no engine"):
            worlds.request("POST", "/step", {})
        assert len(server.bodies) == 1, "another answer to it would be another episode"
        server.answers = [(404, JSON, {"error": "there is no episode x"})]
        with pytest.raises(WorldNotFoundError):
            worlds.request("POST", "/step", {})
        server.answers = [(503, JSON, {"error": "the endpoint is down"}), DONE]
        assert open_simulated(server.url).request("POST", "/step", {}) == {"total": 1}
        worlds.close()
