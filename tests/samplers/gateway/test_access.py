"""Who reaches what: secrets, paths, the control API, many clients at once."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import httpx
import pytest

from core.errors import InputError, MachineError, Transient, UsageError
from samplers.gateway.exchanges import read_exchanges
from samplers.gateway.process import GatewayProcess, RolloutAccess, Upstream
from tests.samplers.gateway.clients import iterate_events, make_body, make_url, post, read_reply
from tests.samplers.gateway.conftest import ServeModel, StartGateway
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn

HEADERS = {"chat": "authorization", "responses": "authorization", "messages": "x-api-key"}


@pytest.fixture
def gateway(start_gateway: StartGateway, serve_model: ServeModel) -> Iterator[GatewayProcess]:
    """A gateway to whose model nothing may be sent."""
    with serve_model([]) as model:
        opened = start_gateway(model)
        opened.open_rollout("r", RolloutAccess(secret="s"))
        yield opened
        assert not model.requests


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
@pytest.mark.parametrize("secret", ["wrong", "", "R"])
def test_a_wrong_secret_reaches_nothing(
    start_gateway: StartGateway, serve_model: ServeModel, dialect: str, secret: str
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        path = make_url(gateway, secret, dialect) if secret else make_url(gateway, "s", dialect).replace("/r/s", "")
        response = httpx.post(path, json=make_body(dialect, "hi"))
        assert response.status_code == 401
        assert response.json()["error"]["type"] == "authentication_error"
        assert (response.json().get("type") == "error") is (dialect == "messages")
        assert not model.requests
        assert gateway.get_usage("r").requests == 0


@pytest.mark.parametrize("path", ["/v1/{}", "/{}", "/v1/v1/{}", "/r/s/v1/{}", "/r/s/{}", "/r/s/v1/v1/{}?beta=true"])
def test_every_spelling_of_a_path_leads_to_the_model(
    start_gateway: StartGateway, serve_model: ServeModel, path: str
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        for dialect, name in (("chat", "chat/completions"), ("responses", "responses"), ("messages", "messages")):
            key = {"x-api-key": "s"} if dialect == "messages" else {"authorization": "Bearer s"}
            url = f"http://127.0.0.1:{gateway.port}{path.format(name)}"
            response = httpx.post(url, json=make_body(dialect, "hi"), headers={} if "/r/s" in path else key)
            assert read_reply(dialect, response).text == "ok"


def test_a_rollout_sees_no_other_ones_record(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    """The same request of another rollout is sent, also when the first one's answer waits for its client."""
    with serve_model([]) as model:
        model.answer = lambda request: Turn(text=f"answer {len(model.requests)}")
        gateway = start_gateway(model)
        for name in ("a", "b"):
            gateway.open_rollout(name, RolloutAccess(secret=f"secret-{name}", replay=True))
        texts = [read_reply("chat", post(gateway, f"secret-{name}", "chat")).text for name in ("a", "b")]
        gateway.open_rollout("b", RolloutAccess(secret="secret-b", replay=True))
        texts.append(read_reply("chat", post(gateway, "secret-b", "chat")).text)
        assert texts == ["answer 1", "answer 2", "answer 2"]
        for name in ("a", "b"):
            assert {e.rollout for e in read_exchanges(gateway.log_dir / f"{name}.jsonl")} == {name}


def test_a_secret_belongs_to_one_rollout_and_ends_with_it(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        with pytest.raises(InputError, match="another rollout"):
            gateway.open_rollout("other", RolloutAccess(secret="s"))
        assert post(gateway, "s", "chat").status_code == 200
        assert gateway.close_rollout("r").requests == 1
        assert post(gateway, "s", "chat").status_code == 401
        with pytest.raises(InputError, match="not open"):
            gateway.get_usage("r")
        with pytest.raises(InputError, match="not open"):
            gateway.close_rollout("r")


def test_closing_waits_for_calls_in_flight(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    go, calls = threading.Event(), count()

    def answer(_: ModelRequest) -> Turn:
        # Only the first waits: another one may come before the gateway closes the rollout.
        if next(calls) == 0:
            go.wait(120)
        return Turn(text="late")

    with serve_model(answer) as model, ThreadPoolExecutor(2) as pool:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        answered = pool.submit(post, gateway, "s", "chat")
        while not model.requests:
            pass
        closed = pool.submit(gateway.close_rollout, "r")
        n_early = 0
        # One that the closing overtakes between its secret and its body is refused with 503 and counts as none.
        while (status := post(gateway, "s", "chat", "other").status_code) != 401:
            assert status in {200, 503}
            n_early += status == 200
        assert not closed.done()
        go.set()
        assert closed.result().requests == 1 + n_early
        assert read_reply("chat", answered.result()).text == "late"


@pytest.mark.parametrize("path", ["/rollouts/r", "/health", "/r/s/rollouts/r", "/v1/rollouts/r"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_agents_do_not_reach_the_control_api(gateway: GatewayProcess, path: str, method: str) -> None:
    response = httpx.request(method, f"http://127.0.0.1:{gateway.port}{path}", headers={"authorization": "Bearer s"})
    assert response.status_code == 404
    assert gateway.get_usage("r").requests == 0


def test_the_control_api_is_for_the_holder_of_the_token(gateway: GatewayProcess) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(gateway._control))) as client:
        for headers in ({}, {"authorization": "Bearer s"}):
            assert client.get("http://x/rollouts/r", headers=headers).status_code == 401
            assert client.delete("http://x/rollouts/r", headers=headers).status_code == 401
    assert gateway._control.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("path", "shape"), [("v1/embeddings", "chat"), ("v1/messages/batches", "messages"), ("v1/responses/x", "responses")]
)
def test_an_unknown_path_is_an_error_in_its_dialect(gateway: GatewayProcess, path: str, shape: str) -> None:
    response = httpx.post(f"http://127.0.0.1:{gateway.port}/r/s/{path}", json={})
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "not_found_error"
    assert (response.json().get("type") == "error") is (shape == "messages")


def test_a_websocket_is_refused_and_the_connection_is_of_use(gateway: GatewayProcess) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port or 0, timeout=10)
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
    }
    connection.request("GET", "/r/s/v1/responses", headers=headers)
    response = connection.getresponse()
    assert response.status == 426
    assert "WebSockets" in json.loads(response.read())["error"]["message"]
    connection.close()


def test_models_are_the_rollouts_own_or_the_upstreams(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("a", RolloutAccess(secret="a", model="trained"))
        gateway.open_rollout("b", RolloutAccess(secret="b"))
        base = f"http://127.0.0.1:{gateway.port}"
        assert [model["id"] for model in httpx.get(f"{base}/r/a/v1/models").json()["data"]] == ["trained"]
        assert httpx.get(f"{base}/r/a/v1/models/anything").json()["id"] == "trained"
        assert [model["id"] for model in httpx.get(f"{base}/r/b/v1/models").json()["data"]] == ["scripted"]


@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
def test_tokens_are_counted_for_clients_of_messages(
    start_gateway: StartGateway, serve_model: ServeModel, upstream: str
) -> None:
    """By the upstream where it can; nothing is recorded."""
    with serve_model([]) as model:
        gateway = start_gateway(model, upstream)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        url = make_url(gateway, "s", "messages") + "/count_tokens"
        counts = [httpx.post(url, json=make_body("messages", text)).json()["input_tokens"] for text in ("a", "a b c")]
        assert counts[1] == counts[0] + 2 if upstream == "anthropic" else 0 < counts[0] <= counts[1]
        assert gateway.get_usage("r").requests == 0


def test_two_hundred_streams_at_once_each_get_their_own_answer(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([]) as model:
        model.answer = lambda request: Turn(text=f"for {request.body['messages'][-1]['content']} alone", delay=0.05)
        gateway = start_gateway(model, concurrency=200)
        gateway.open_rollout("r", RolloutAccess(secret="s"))

        def stream(number: int) -> str:
            response = post(gateway, "s", "chat", f"number-{number}", streamed=True)
            return "".join(
                e["choices"][0]["delta"].get("content", "") for e in iterate_events(response.text) if e["choices"]
            )

        with ThreadPoolExecutor(200) as pool:
            texts = list(pool.map(stream, range(200)))
        assert texts == [f"for number-{number} alone" for number in range(200)]
        assert gateway.get_usage("r").requests == 200


def test_no_more_requests_are_sent_at_once_than_the_upstream_takes(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    most = 0
    running = 0
    lock = threading.Lock()

    def answer(_: ModelRequest) -> Turn:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with lock:
            running -= 1
        return Turn(text="ok")

    with serve_model(answer) as model, ThreadPoolExecutor(16) as pool:
        gateway = start_gateway(model, concurrency=3)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        statuses = [
            response.status_code for response in pool.map(lambda n: post(gateway, "s", "chat", f"{n}"), range(16))
        ]
        assert statuses == [200] * 16
        assert most == 3


def test_what_cannot_start_names_its_reason(tmp_path: Path) -> None:
    upstream = Upstream(url="http://127.0.0.1:1/v1")
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(MachineError, match="is in use"):
        GatewayProcess(upstream, tmp_path, agent_socket=None, port=listener.getsockname()[1]).__enter__()
    with pytest.raises(UsageError, match="listens nowhere"):
        GatewayProcess(upstream, tmp_path, agent_socket=None, port=None).__enter__()
    with pytest.raises(InputError, match="107 bytes"):
        GatewayProcess(upstream, tmp_path, agent_socket=tmp_path / ("x" * 120), port=None).__enter__()


def test_a_gateway_that_is_gone_is_a_transient_error(tmp_path: Path) -> None:
    with ScriptedModel([]) as model:
        upstream = Upstream(url=model.url)
        with GatewayProcess(upstream, tmp_path, agent_socket=None, port=0) as gateway:
            gateway.kill()
            assert not gateway.is_alive
            with pytest.raises(Transient, match="does not answer"):
                gateway.open_rollout("r", RolloutAccess(secret="s"))


def test_the_upstream_is_reached_through_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedModel([Turn(text="through the proxy")]) as model:
        monkeypatch.setenv("http_proxy", model.url.removesuffix("/v1"))
        upstream = Upstream(url="http://models.invalid/v1")
        with GatewayProcess(upstream, tmp_path, agent_socket=None, port=0) as gateway:
            monkeypatch.delenv("http_proxy")
            gateway.open_rollout("r", RolloutAccess(secret="s"))
            assert read_reply("chat", post(gateway, "s", "chat")).text == "through the proxy"
        assert model.requests[0].path == "http://models.invalid/v1/chat/completions"
