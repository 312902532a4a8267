"""The gateway, the model server and the driver are killed at random moments: nothing is paid twice, nothing lost."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from core.errors import MachineError
from samplers.gateway.exchanges import read_exchanges
from samplers.gateway.process import GatewayProcess, RolloutAccess, Upstream
from tests.samplers.gateway.clients import make_body, make_url, read_reply
from tests.samplers.gateway.slow_answers import answer_slowly
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn

ROOT = Path(__file__).parents[3]
ROLLOUTS = ("r0", "r1", "r2")
TURNS = 12
KILLS = 10
STREAMED = {"r0": False, "r1": True, "r2": True}
DIALECTS = {"r0": "chat", "r1": "messages", "r2": "responses"}


def play(gateway: GatewayProcess, name: str) -> list[str]:
    """Send the requests of a rollout one after the other, as an agent that repeats what fails; return the answers."""
    answers = []
    for turn in range(TURNS):
        until = time.monotonic() + 60
        body = make_body(DIALECTS[name], f"{name}-{turn}", streamed=STREAMED[name])
        while True:
            try:
                response = httpx.post(make_url(gateway, name, DIALECTS[name]), json=body, timeout=30)
                reply = read_reply(DIALECTS[name], response)
                assert reply.reason
                break
            except (httpx.TransportError, httpx.HTTPStatusError, AssertionError, KeyError, IndexError):
                assert time.monotonic() < until, "the gateway did not come back"
                time.sleep(0.02)
        answers.append(reply.text)
    return answers


def check(log_dir: Path, model: ScriptedModel, answers: dict[str, list[str]]) -> None:
    """Check that every answer was recorded and paid once."""
    assert set(model.paid_keys.values()) == {1}
    assert model.paid == len(ROLLOUTS) * TURNS
    for name in ROLLOUTS:
        exchanges = read_exchanges(log_dir / f"{name}.jsonl")
        good = [exchange for exchange in exchanges if exchange.error is None]
        asked = [json.loads(e.request)["messages"][-1]["content"] for e in good]
        assert list(dict.fromkeys(asked)) == [f"{name}-{turn}" for turn in range(TURNS)]
        assert answers[name] == [f"the answer to {name}-{turn} is one two three four five six" for turn in range(TURNS)]
        assert max(Counter(e.key for e in good).values()) == 1


def test_a_gateway_killed_at_random_moments_pays_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    moments = random.Random(7)
    with ScriptedModel(answer_slowly, paid_log=tmp_path / "paid.jsonl") as model:
        upstream = Upstream(url=model.url, first_pause=0.01)
        with (
            GatewayProcess(upstream, tmp_path / "logs", agent_socket=None, port=0) as gateway,
            ThreadPoolExecutor(len(ROLLOUTS)) as pool,
        ):
            for name in ROLLOUTS:
                gateway.open_rollout(name, RolloutAccess(secret=name))
            played = {name: pool.submit(play, gateway, name) for name in ROLLOUTS}
            for _ in range(KILLS):
                time.sleep(moments.uniform(0.0, 0.12))
                gateway.kill()
                gateway.restart()
            answers = {name: future.result() for name, future in played.items()}
            usage = [gateway.close_rollout(name) for name in ROLLOUTS]
        check(tmp_path / "logs", model, answers)
        assert [used.requests - used.failed for used in usage] == [TURNS] * len(ROLLOUTS)


def test_rollouts_that_begin_again_after_their_driver_was_killed_pay_nothing_twice(tmp_path: Path) -> None:
    """Each run gets further than the last; agents begin with their first request every time."""
    moments = random.Random(11)
    with ScriptedModel(answer_slowly) as model:
        upstream = Upstream(url=model.url, first_pause=0.01)
        answers: dict[str, list[str]] = {}
        for run in range(5):
            with (
                GatewayProcess(upstream, tmp_path / "logs", agent_socket=None, port=0) as gateway,
                ThreadPoolExecutor(len(ROLLOUTS)) as pool,
            ):
                for name in ROLLOUTS:
                    gateway.open_rollout(name, RolloutAccess(secret=name, replay=True))
                stop = threading.Event()
                played = {name: pool.submit(play_until, gateway, name, stop) for name in ROLLOUTS}
                if run < 4:
                    time.sleep(moments.uniform(0.1, 0.3))
                    gateway.kill()
                    stop.set()
                answers = {name: future.result() for name, future in played.items()}
        check(tmp_path / "logs", model, answers)


def play_until(gateway: GatewayProcess, name: str, stop: threading.Event) -> list[str]:
    """Play as `play`, and give up when the run has ended."""
    answers = []
    for turn in range(TURNS):
        body = make_body(DIALECTS[name], f"{name}-{turn}", streamed=STREAMED[name])
        try:
            response = httpx.post(make_url(gateway, name, DIALECTS[name]), json=body, timeout=30)
            answers.append(read_reply(DIALECTS[name], response).text)
        except (httpx.TransportError, AssertionError, KeyError, IndexError):
            assert stop.wait(20)
            return answers
    return answers


def start_model(tmp_path: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.samplers.scripted_model", "--port", str(port)]
    command += ["--paid", str(tmp_path / "paid.jsonl"), "--answer", f"{answer_slowly.__module__}:answer_slowly"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline()
    return process


def test_a_model_server_killed_at_random_moments_is_paid_once(tmp_path: Path) -> None:
    moments = random.Random(3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    model = start_model(tmp_path, port)
    try:
        upstream = Upstream(url=f"http://127.0.0.1:{port}/v1", first_pause=0.05, attempts=20)
        with (
            GatewayProcess(upstream, tmp_path / "logs", agent_socket=None, port=0) as gateway,
            ThreadPoolExecutor(len(ROLLOUTS)) as pool,
        ):
            for name in ROLLOUTS:
                gateway.open_rollout(name, RolloutAccess(secret=name))
            played = {name: pool.submit(play, gateway, name) for name in ROLLOUTS}
            for _ in range(3):
                time.sleep(moments.uniform(0.05, 0.2))
                end(model)
                model = start_model(tmp_path, port)
            answers = {name: future.result() for name, future in played.items()}
    finally:
        end(model)
    with ScriptedModel([], paid_log=tmp_path / "paid.jsonl") as counted:
        check(tmp_path / "logs", counted, answers)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


DRIVER = """
import sys, time
from pathlib import Path
from samplers.gateway.process import GatewayProcess, RolloutAccess, Upstream
upstream = Upstream(url=sys.argv[1])
with GatewayProcess(upstream, Path(sys.argv[2]), agent_socket=None, port=0) as gateway:
    gateway.open_rollout("r", RolloutAccess(secret="s"))
    print(gateway.port, gateway.pid, flush=True)
    time.sleep(60)
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("by", ["driver", "signal"])
def test_a_gateway_whose_driver_dies_finishes_its_calls_and_takes_no_others(tmp_path: Path, by: str) -> None:
    go = threading.Event()

    def answer(_: ModelRequest) -> Turn:
        go.wait(20)
        return Turn(text="the end")

    with ScriptedModel(answer) as model, ThreadPoolExecutor(1) as pool:
        command = [sys.executable, "-c", DRIVER, model.url, str(tmp_path)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout
            port, pid = map(int, driver.stdout.readline().split())
            url = f"http://127.0.0.1:{port}/r/s/v1/chat/completions"
            answered = pool.submit(httpx.post, url, json=make_body("chat", "q"), timeout=30)
            wait_for(lambda: bool(model.requests))
            if by == "driver":
                driver.kill()
            else:
                os.kill(pid, signal.SIGTERM)
            time.sleep(0.2)  # a call before the gateway has seen the end would be taken, and wait for `go`
            wait_for(lambda: httpx.post(url, json=make_body("chat", "other")).status_code in (401, 503))
            with pytest.raises(MachineError, match="another gateway"):
                start_second(model.url, tmp_path)
            go.set()
            assert answered.result().status_code == 200
            wait_for(lambda: not is_running(pid))
            driver.kill()
    (exchange,) = read_exchanges(tmp_path / "r.jsonl")
    assert exchange.error is None
    assert len(model.requests) == 1


def start_second(url: str, log_dir: Path) -> None:
    with GatewayProcess(Upstream(url=url, request_timeout=0.1), log_dir, agent_socket=None, port=0):
        pass


def wait_for(condition: object) -> None:
    assert callable(condition)
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_gateway_that_ends_sends_nothing_that_waits_for_its_turn(tmp_path: Path) -> None:
    """One request is answered, the two behind it are not sent, and are no answers in the log."""
    go = threading.Event()

    def answer(_: ModelRequest) -> Turn:
        go.wait(20)
        return Turn(text="the end")

    with ScriptedModel(answer) as model, ThreadPoolExecutor(4) as pool:
        upstream = Upstream(url=model.url, concurrency=1)
        with GatewayProcess(upstream, tmp_path, agent_socket=None, port=0) as gateway:
            gateway.open_rollout("r", RolloutAccess(secret="s"))
            url = make_url(gateway, "s", "chat")
            asked = [pool.submit(httpx.post, url, json=make_body("chat", f"{n}"), timeout=30) for n in range(3)]
            wait_for(lambda: gateway.get_usage("r").in_flight == 3 and model.requests)
            ended = pool.submit(gateway.stop)
            # Before the gateway begins to end, a request that can be answered would wait for its turn, too.
            wait_for(lambda: httpx.post(url, content=b"late").status_code in (401, 503))
            go.set()
            ended.result()
            assert sorted(future.result().status_code for future in asked) == [200, 503, 503]
        assert len(model.requests) == 1
    kinds = [exchange.error.kind if exchange.error else "answer" for exchange in read_exchanges(tmp_path / "r.jsonl")]
    assert sorted(kinds) == ["answer", "closing", "closing"]


def test_a_request_that_was_sent_before_the_gateway_ends_keeps_its_key(tmp_path: Path) -> None:
    """The answer was paid and cut; the gateway ends in the pause before the next attempt."""
    turns = [Turn(text="one two three", fault="cut", times=1)]
    with ScriptedModel(turns) as model, ThreadPoolExecutor(1) as pool:
        upstream = Upstream(url=model.url, first_pause=50)
        with GatewayProcess(upstream, tmp_path, agent_socket=None, port=0) as gateway:
            gateway.open_rollout("r", RolloutAccess(secret="s"))
            asked = pool.submit(httpx.post, make_url(gateway, "s", "chat"), json=make_body("chat", "q"), timeout=30)
            wait_for(lambda: model.paid == 1)
            started = time.monotonic()
            gateway.stop()
            assert time.monotonic() - started < 20, "it waited for the end of the pause"
            assert asked.result().status_code == 503
        with GatewayProcess(upstream, tmp_path, agent_socket=None, port=0) as gateway:
            gateway.open_rollout("r", RolloutAccess(secret="s", replay=True))
            answer = httpx.post(make_url(gateway, "s", "chat"), json=make_body("chat", "q"), timeout=30)
            assert read_reply("chat", answer).text == "one two three"
        assert len(model.requests) == 2
        assert len(model.paid_keys) == 1
