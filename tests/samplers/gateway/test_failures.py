"""Model servers that fail: what is tried again, what the agent gets, and the reason that is recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from samplers.gateway.exchanges import Exchange, read_exchanges
from samplers.gateway.process import GatewayProcess, RolloutAccess
from tests.samplers.gateway.clients import iterate_events, post, read_reply
from tests.samplers.gateway.conftest import ServeModel, StartGateway
from tests.samplers.scripted_model import Call, Turn

ACCESS = RolloutAccess(secret="s")
LASTING = [
    ("429", "rate-limit", 429, 3),
    ("500", "server", 500, 3),
    ("refuse", "connection", 502, 3),
    ("hang", "timeout", 504, 3),
    ("html", "nonsense", 502, 1),
    ("broken-json", "nonsense", 502, 1),
    ("no-answer", "nonsense", 502, 1),
    ("null-choice", "nonsense", 502, 1),
    ("odd-usage", "nonsense", 502, 1),
    ("odd-calls", "nonsense", 502, 1),
    ("deep", "nonsense", 502, 1),
    ("enormous", "too-large", 502, 1),
    ("401", "key", 401, 1),
    ("context", "context", 400, 1),
]


def read_last(gateway: GatewayProcess) -> Exchange:
    return read_exchanges(gateway.log_dir / "r.jsonl")[-1]


@contextmanager
def serve_fault(
    start: StartGateway, serve_model: ServeModel, turn: Turn, upstream: str = "openai"
) -> Iterator[GatewayProcess]:
    with serve_model([turn]) as model:
        gateway = start(model, upstream, attempts=3, request_timeout=0.5 if turn.fault == "hang" else 20)
        gateway.open_rollout("r", ACCESS)
        yield gateway


@pytest.mark.parametrize(("fault", "kind", "status", "attempts"), LASTING, ids=[row[0] for row in LASTING])
def test_a_lasting_failure_reaches_agent_driver_and_record(
    start_gateway: StartGateway, serve_model: ServeModel, fault: str, kind: str, status: int, attempts: int
) -> None:
    with serve_fault(start_gateway, serve_model, Turn(text="x", fault=fault)) as gateway:
        response = post(gateway, "s", "chat")
        assert response.status_code == status
        assert response.headers["x-should-retry"] == "false"
        assert response.json()["error"]["message"]
        exchange = read_last(gateway)
        assert exchange.error
        assert (exchange.error.kind, exchange.attempts, exchange.response) == (kind, attempts, None)
        usage = gateway.get_usage("r")
        assert usage.last_error == exchange.error.model_dump()
        assert usage.failed == 1


@pytest.mark.parametrize("fault", ["429", "500", "refuse", "hang", "cut"])
def test_a_failure_that_passes_is_tried_again(start_gateway: StartGateway, serve_model: ServeModel, fault: str) -> None:
    with serve_fault(start_gateway, serve_model, Turn(text="there", fault=fault, times=2)) as gateway:
        assert read_reply("chat", post(gateway, "s", "chat")).text == "there"
        exchange = read_last(gateway)
        assert (exchange.error, exchange.attempts) == (None, 3)


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
@pytest.mark.parametrize("fault", ["null-choice", "odd-usage", "odd-calls", "odd-event"])
def test_a_stream_of_another_shape_is_the_upstreams_failure(
    start_gateway: StartGateway, serve_model: ServeModel, dialect: str, fault: str
) -> None:
    with serve_fault(start_gateway, serve_model, Turn(fault=fault)) as gateway:
        assert post(gateway, "s", dialect, streamed=True).status_code == 502
        error = read_last(gateway).error
        assert error
        assert error.kind == "nonsense"
        assert "another shape" in error.detail


def test_every_attempt_has_the_same_key(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([Turn(text="there", fault="cut", times=1)]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        assert post(gateway, "s", "chat").status_code == 200
        assert len(model.requests) == 2
        assert model.paid == 1


@pytest.mark.parametrize("fault", ["cut", "unfinished"])
@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_a_stream_that_is_cut_ends_with_an_error_in_the_agents_dialect(
    start_gateway: StartGateway, serve_model: ServeModel, upstream: str, dialect: str, fault: str
) -> None:
    with serve_fault(
        start_gateway, serve_model, Turn(text="one two three four five six", fault=fault), upstream
    ) as gateway:
        response = post(gateway, "s", dialect, streamed=True)
        events = list(iterate_events(response.text))
        assert "one two" in response.text
        assert "[DONE]" not in response.text
        last = events[-1]
        error = last["response"]["error"] if dialect == "responses" else last["error"]
        assert "the answer was cut" in error["message"]
        assert last.get("type") == {"chat": None, "messages": "error", "responses": "response.failed"}[dialect]
        exchange = read_last(gateway)
        assert exchange.error
        assert exchange.error.kind == "cut"


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
@pytest.mark.parametrize("fault", ["html", "500", "401"])
def test_a_stream_that_never_begins_is_an_error_with_its_status(
    start_gateway: StartGateway, serve_model: ServeModel, dialect: str, fault: str
) -> None:
    with serve_fault(start_gateway, serve_model, Turn(text="x", fault=fault)) as gateway:
        response = post(gateway, "s", dialect, streamed=True)
        assert response.status_code == {"html": 502, "500": 500, "401": 401}[fault]
        assert (response.json().get("type") == "error") is (dialect == "messages")


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_five_megabytes_of_text_are_an_answer_and_twenty_are_not(
    start_gateway: StartGateway, serve_model: ServeModel, streamed: bool
) -> None:
    with serve_fault(start_gateway, serve_model, Turn(fault="huge")) as gateway:
        assert len(read_reply("chat", post(gateway, "s", "chat", streamed=streamed)).text) == 5_000_000
    with serve_model([Turn(fault="enormous")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        post(gateway, "s", "chat", streamed=streamed)
        exchange = read_last(gateway)
        assert exchange.error
        assert exchange.error.kind == "too-large"


def test_the_key_of_the_upstream_is_in_no_message_and_no_log(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="x")], key="right") as model:
        gateway = start_gateway(model, key="sk-wrong-1234")
        gateway.open_rollout("r", ACCESS)
        response = post(gateway, "s", "chat")
        assert response.status_code == 401
        assert "Incorrect API key provided: Bearer [key]" in response.text
        assert "sk-wrong" not in (gateway.log_dir / "r.jsonl").read_text()


def test_anthropics_clients_recognise_a_prompt_that_is_too_long(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_fault(start_gateway, serve_model, Turn(fault="context")) as gateway:
        assert post(gateway, "s", "messages").json()["error"]["message"].startswith("prompt is too long")
        assert post(gateway, "s", "chat").json()["error"]["code"] == "context_length_exceeded"


def test_a_call_of_an_unknown_tool_is_the_agents_to_answer(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(calls=(Call("no_such_tool", {}),))]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        for dialect in ("chat", "messages", "responses"):
            assert read_reply(dialect, post(gateway, "s", dialect)).calls[0][1] == "no_such_tool"


def test_an_upstream_that_is_not_there_is_a_failure_of_its_connection(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([]) as model:
        gateway = start_gateway(model, attempts=2)
    gateway.open_rollout("r", ACCESS)
    response = post(gateway, "s", "chat")
    assert response.status_code == 502
    assert response.json()["error"]["message"] == "cannot reach the upstream: it accepts no connection"
    exchange = read_last(gateway)
    assert exchange.error
    assert (exchange.error.kind, exchange.attempts) == ("connection", 2)


def test_a_server_that_does_not_stream_gives_a_stream_all_the_same(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    """Its answer has the type of JSON."""
    with serve_model([Turn(text="whole")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", sampling={"stream": False}))
        for dialect in ("chat", "messages", "responses"):
            response = post(gateway, "s", dialect, streamed=True)
            assert "event-stream" in response.headers["content-type"]
            assert read_reply(dialect, response).text == "whole"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"[1]",
        b'{"messages": "x"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"messages": [], "tools": [{"function": "f"}]}',
        b'{"messages": [{"role": "ai", "content": "x"}]}',
        b'{"messages": [{"role": "user", "content": 5}]}',
        b'{"messages": [], "functions": [{"name": "f"}]}',
    ],
    ids=range(10),
)
def test_a_body_that_is_no_request_is_refused(
    start_gateway: StartGateway, serve_model: ServeModel, content: bytes
) -> None:
    with serve_model([Turn(text="x")]) as model:
        gateway = start_gateway(model, "anthropic")
        gateway.open_rollout("r", ACCESS)
        url = f"http://127.0.0.1:{gateway.port}/r/s/v1/chat/completions"
        response = httpx.post(url, content=content)
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert not re.search(r"codec|object has no|Expecting|Error|recursion", error["message"])
        assert not model.requests
