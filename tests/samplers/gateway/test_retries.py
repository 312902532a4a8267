"""Nothing is paid twice: the same request in flight, lost clients, and runs that begin again."""

from __future__ import annotations

import dataclasses
import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from samplers.gateway.exchanges import read_exchanges
from samplers.gateway.process import Budget, GatewayProcess, RolloutAccess
from tests.samplers.gateway.clients import make_body, make_url, post, read_reply
from tests.samplers.gateway.conftest import ServeModel, StartGateway
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn

ACCESS = RolloutAccess(secret="s")
REPLAY = RolloutAccess(secret="s", replay=True)


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def count_answers(model: ScriptedModel) -> Callable[[ModelRequest], Turn]:
    """Answer with the number of the answer, so that no two are the same."""
    return lambda request: Turn(text=f"answer {len(model.requests)} to {request.body['messages'][-1]['content']}")


def ask(gateway: GatewayProcess, text: str, *, dialect: str = "chat", streamed: bool = False) -> str:
    return read_reply(dialect, post(gateway, "s", dialect, text, streamed=streamed)).text


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_the_same_request_in_flight_is_sent_once(
    start_gateway: StartGateway, serve_model: ServeModel, streamed: bool
) -> None:
    go = threading.Event()

    def answer(_: ModelRequest) -> Turn:
        go.wait(20)
        return Turn(text="one two three")

    with serve_model(answer) as model, ThreadPoolExecutor(5) as pool:
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        asked = [pool.submit(ask, gateway, "q", streamed=streamed) for _ in range(5)]
        wait_until(lambda: gateway.get_usage("r").replayed == 4)
        go.set()
        assert [future.result() for future in asked] == ["one two three"] * 5
        assert len(model.requests) == 1
        assert gateway.get_usage("r").requests == 1
        assert len(read_exchanges(gateway.log_dir / "r.jsonl")) == 1


def test_a_request_that_differs_or_is_another_rollouts_is_sent(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="slow", delay=0.3)]) as model, ThreadPoolExecutor(3) as pool:
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        gateway.open_rollout("other", RolloutAccess(secret="t"))
        asked = [pool.submit(post, gateway, secret, "chat", text) for secret, text in ("sa", "sb", "ta")]
        assert [future.result().status_code for future in asked] == [200] * 3
        assert len(model.requests) == 3


def send_and_leave(gateway: GatewayProcess, text: str, *, streamed: bool) -> None:
    """Send a request and close the connection before the answer."""
    content = json.dumps(make_body("chat", text, streamed=streamed)).encode()
    head = f"POST /r/s/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port or 0)) as connection:
        connection.sendall(head.encode() + content)
        wait_until(lambda: gateway.get_usage("r").in_flight == 1)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_the_answer_of_a_client_that_left_is_recorded_and_given_when_it_comes_back(
    start_gateway: StartGateway, serve_model: ServeModel, streamed: bool
) -> None:
    with serve_model([]) as model:
        model.answer = lambda request: Turn(text=f"answer {len(model.requests)}", delay=0.1)
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        send_and_leave(gateway, "q", streamed=streamed)
        wait_until(lambda: gateway.get_usage("r").in_flight == 0)
        (exchange,) = read_exchanges(gateway.log_dir / "r.jsonl")
        assert exchange.error is None
        assert ask(gateway, "q", streamed=streamed) == "answer 1"
        assert gateway.get_usage("r").replayed == 1
        assert ask(gateway, "q", streamed=streamed) == "answer 2"
        assert len(model.requests) == 2


def test_a_client_that_has_its_answer_gets_another_one(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([]) as model:
        model.answer = count_answers(model)
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        assert [ask(gateway, "q") for _ in range(2)] == ["answer 1 to q", "answer 2 to q"]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_a_run_that_begins_again_is_answered_from_the_log_until_it_differs(
    start_gateway: StartGateway, serve_model: ServeModel, dialect: str, streamed: bool
) -> None:
    with serve_model([]) as model:
        model.answer = count_answers(model)
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        first = [ask(gateway, text, dialect=dialect, streamed=streamed) for text in "aabcd"]
        gateway.close_rollout("r")
        gateway.open_rollout("r", REPLAY)
        assert [ask(gateway, text, dialect=dialect, streamed=streamed) for text in "aab"] == first[:3]
        assert len(model.requests) == 5
        usage = gateway.get_usage("r")
        assert (usage.requests, usage.replayed) == (3, 3)
        second = [ask(gateway, text, dialect=dialect, streamed=streamed) for text in "xcd"]
        assert second == ["answer 6 to x", "answer 7 to c", "answer 8 to d"]
        log = gateway.log_dir / "r.jsonl"
        assert [exchange.exchange for exchange in read_exchanges(log)] == [0, 1, 2, 5, 6, 7]
        assert [exchange.exchange for exchange in read_exchanges(log, run=0)] == [0, 1, 2, 3, 4]


def test_a_third_run_has_the_answers_of_both_before(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([]) as model:
        model.answer = count_answers(model)
        gateway = start_gateway(model)
        answers = []
        for texts in ("abc", "ab", "abcd"):
            gateway.open_rollout("r", REPLAY)
            answers.append([ask(gateway, text) for text in texts])
        assert answers[2][:3] == answers[0]
        assert len(model.requests) == 4


def test_a_run_that_is_not_to_be_replayed_pays_again(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([]) as model:
        model.answer = count_answers(model)
        gateway = start_gateway(model)
        for _ in range(2):
            gateway.open_rollout("r", ACCESS)
            ask(gateway, "a")
        assert len(model.requests) == 2


def test_replayed_answers_count_for_the_budget(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    """So a run that begins again ends where it did."""
    with serve_model([]) as model:
        model.answer = count_answers(model)
        gateway = start_gateway(model)
        budget = Budget(requests=2)
        for _ in range(2):
            gateway.open_rollout("r", RolloutAccess(secret="s", replay=True, budget=budget))
            statuses = [post(gateway, "s", "chat", text).status_code for text in "abc"]
            assert statuses == [200, 200, 400]
        assert len(model.requests) == 2


def test_marks_for_caches_and_names_of_senders_make_no_difference(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        mark = {"cache_control": {"type": "ephemeral"}}
        for run, (extra, marks) in enumerate((({"metadata": {"user_id": "1"}}, mark), ({}, {}))):
            gateway.open_rollout("r", REPLAY)
            content = [{"type": "text", "text": "hi"} | marks]
            post(gateway, "s", "messages", messages=[{"role": "user", "content": content}], **extra)
            assert len(model.requests) == 1, run


@pytest.mark.parametrize("end", ["gateway", "driver"])
def test_a_request_in_doubt_is_sent_again_with_its_key(
    start_gateway: StartGateway, serve_model: ServeModel, end: str
) -> None:
    """The upstream has it when the gateway is killed, and is not paid a second time."""
    hold = threading.Event()

    def answer(_: ModelRequest) -> Turn:
        hold.wait(20)
        return Turn(text="paid once")

    with serve_model(answer) as model, ThreadPoolExecutor(1) as pool:
        gateway = start_gateway(model)
        gateway.open_rollout("r", REPLAY)
        lost = pool.submit(ask, gateway, "q")
        wait_until(lambda: len(model.requests) == 1)
        gateway.kill()
        with pytest.raises(httpx.TransportError):
            lost.result()
        hold.set()
        gateway.restart()
        if end == "driver":
            gateway.open_rollout("r", REPLAY)
        assert ask(gateway, "q") == "paid once"
        keys = [request.headers["idempotency-key"] for request in model.requests]
        assert len(keys) == 2
        assert len(set(keys)) == model.paid == 1
        (exchange,) = read_exchanges(gateway.log_dir / "r.jsonl")
        assert exchange.key == keys[0]


def test_an_agent_goes_on_after_the_gateway_was_killed(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    """Usage counts what was before, failures too."""
    with serve_model([Turn(fault="html")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        assert post(gateway, "s", "chat").status_code == 502
        model.answer = lambda request: Turn(text=f"answer to {request.body['messages'][-1]['content']}")
        assert ask(gateway, "a") == "answer to a"
        port = gateway.port
        gateway.kill()
        gateway.restart()
        assert gateway.port == port
        assert ask(gateway, "b") == "answer to b"
        usage = gateway.get_usage("r")
        assert (usage.requests, usage.failed) == (3, 1)
        assert [exchange.exchange for exchange in read_exchanges(gateway.log_dir / "r.jsonl")] == [0, 1, 2]


def test_an_agent_is_reached_by_the_socket_after_a_restart(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", ACCESS)
        assert gateway.agent_socket
        for _ in range(2):
            assert gateway.agent_socket.stat().st_mode & 0o777 == 0o666
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(gateway.agent_socket))) as client:
                url = make_url(gateway, "s", "chat").replace(f"127.0.0.1:{gateway.port}", "gateway")
                assert client.post(url, json=make_body("chat", "hi")).status_code == 200
            gateway.kill()
            gateway.restart()


class StumblingModel(ScriptedModel):
    """Cuts its first answer, which is paid, then has too many requests, then gives the answer again."""

    def find_turn(self, request: ModelRequest) -> Turn:
        fault = {1: "cut", 2: "429"}.get(len(self.requests), "")
        return dataclasses.replace(super().find_turn(request), fault=fault)


def test_a_request_whose_first_attempt_was_perhaps_paid_keeps_its_key(
    start_gateway: StartGateway, upstream_port: int
) -> None:
    """Its last attempt was not: what it failed by says nothing about those before."""
    with StumblingModel([Turn(text="one two three")], port=upstream_port) as model:
        gateway = start_gateway(model, attempts=2)
        gateway.open_rollout("r", ACCESS)
        assert post(gateway, "s", "chat", "q").status_code == 429
        gateway.close_rollout("r")
        gateway.open_rollout("r", REPLAY)
        assert ask(gateway, "q") == "one two three"
        assert len(model.requests) == 3
        assert model.paid == 1
