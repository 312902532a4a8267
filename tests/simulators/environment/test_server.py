"""`mergemill simulate env` as a user starts it: a process, HTTP, bad input, a kill, a token."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.cli import open_mergemill, run_mergemill
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.environment.making import FIND, is_judge, play, tag
from tests.simulators.making import call, make_seed, write_seeds

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def serve(folder: Path, model: ScriptedModel | str, *words: str, **variables: str) -> Iterator[str]:
    """Run the server; yield its address."""
    if not (folder / "seeds.json").exists():
        write_seeds(folder / "seeds.json", range(3))
    url = model if isinstance(model, str) else model.url
    command = ("simulate", "env", "--seeds", "seeds.json", "--domain", "retail", "--port", "0")
    command += ("--llm", url, "--model", "scripted", *words)
    with open_mergemill(*command, cwd=folder, **variables) as server:
        try:
            yield read_address(server.stderr)
        finally:
            os.kill(server.process.pid, signal.SIGINT)
            assert server.process.wait(30) == 0


def read_address(stderr: Iterable[str]) -> str:
    """Return the address that a server writes to its standard error."""
    lines = []
    for line in stderr:
        lines.append(line)
        if match := ADDRESS.search(line):
            return match[0]
    raise AssertionError("".join(lines))


def post(url: str, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    """Return status and content of an answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": "application/json", **headers}
    request = urllib.request.Request(url + path, content, given)  # noqa: S310 - http alone
    return _send(request)


def get(url: str, path: str, **headers: str) -> tuple[int, Any]:
    return _send(urllib.request.Request(url + path, headers=headers))  # noqa: S310 - http alone


def _send(request: urllib.request.Request) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http alone
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(play) as model:
        yield model


def test_an_episode_over_http(tmp_path: Path, model: ScriptedModel) -> None:
    with serve(tmp_path, model, "--episode-rewrites", "0") as url:
        status, health = get(url, "/health")
        assert (status, health["ok"], health["samples"], health["domain"]) == (200, True, 3, "retail")
        assert len(get(url, "/tasks")[1]) == 3
        _, opened = post(url, "/reset", {"seed": 0, "group": 0})
        episode = opened["episode"]
        assert opened["tools"][0]["function"]["name"] == "find_user_id_by_email"
        _, said = post(url, "/step", {"episode": episode, "text": "Your email?", "turn": 0})
        assert said["observation"].startswith("It is ana0@example.org")
        _, reply = post(url, "/step", {"episode": episode, "tool_calls": [{"function": FIND}], "turn": 1})
        assert reply["observation"] == "ana_case_0"
        _, ended = post(url, "/evaluate", {"episode": episode})
        assert (ended["reward"], ended["termination_reason"]) == (1.0, "forced_evaluation")
        _, record = get(url, f"/episodes/{episode}")
        assert (record["environment"], record["reward"], record["num_steps"]) == ("simulated", 1.0, 2)
    run = json.loads((tmp_path / "simulated-episodes" / "run.json").read_text())
    assert (run["environment"], run["options"]["profile"]) == ("simulated", "default")


BAD_REQUESTS = {
    "/reset": [b"{", b"[]", {"seed": "x"}, {"wish": 1}, {"group": -1}, {"task": "a", "seed": 1}],
    "/step": [{}, {"episode": "x"}, {"episode": "x", "text": 1}, {"episode": "x", "text": "a", "more": 1}],
    "/evaluate": [{}, b"", {"episode": 1}],
}


def test_bad_requests_are_a_line_each_and_lose_nothing(tmp_path: Path, model: ScriptedModel) -> None:
    with serve(tmp_path, model) as url:
        for path, bodies in BAD_REQUESTS.items():
            for body in bodies:
                status, answer = post(url, path, body)
                assert (status, "\n" in answer["error"]) == (400, False), (path, body, answer)
        assert post(url, "/reset", {"task": "none"}) == (
            404,
            {"error": "the task none is unknown", "advice": "GET /tasks lists the tasks"},
        )
        for path in ("/step", "/evaluate"):
            status, answer = post(url, path, {"episode": "x", "text": "a"} if path == "/step" else {"episode": "x"})
            assert (status, answer["error"]) == (404, "there is no episode x")
        assert get(url, "/episodes/x")[0] == 404
        assert get(url, "/nothing")[0] == 404
        assert get(url, "/health")[1]["episodes"] == 0
        long = {"episode": "x", "text": "a" * (9 << 20)}
        with pytest.raises((OSError, ValueError)):
            post(url, "/step", long)


def test_a_killed_server_goes_on_where_it_was(tmp_path: Path, model: ScriptedModel) -> None:
    write_seeds(tmp_path / "seeds.json", range(3))
    command = ("simulate", "env", "--seeds", "seeds.json", "--domain", "retail", "--port", "0")
    command += ("--llm", model.url, "--model", "scripted", "--episode-rewrites", "0")
    with open_mergemill(*command, cwd=tmp_path) as server:
        url = read_address(server.stderr)
        _, opened = post(url, "/reset", {"env_id": 3, "group": 1})
        first = post(url, "/step", {"episode": opened["episode"], "text": "Your email?", "turn": 0})
        server.process.kill()
    with serve(tmp_path, model, "--episode-rewrites", "0") as url:
        again = post(url, "/step", {"episode": opened["episode"], "text": "Your email?", "turn": 0})
        assert again == first
        assert model.paid == 1
        conflict = post(url, "/step", {"episode": opened["episode"], "text": "Other", "turn": 0})
        assert conflict[0] == 409
        assert post(url, "/step", {"episode": opened["episode"], "text": "Done.", "turn": 1})[1]["reward"] == 1.0


def test_one_server_has_a_folder(tmp_path: Path, model: ScriptedModel) -> None:
    with serve(tmp_path, model):
        words = ("--seeds", "seeds.json", "--domain", "retail", "--llm", model.url, "--model", "scripted")
        second = run_mergemill("simulate", "env", *words, cwd=tmp_path)
    assert second.exit_code == 3
    assert "another `mergemill simulate` writes to simulated-episodes" in second.stderr


def test_a_token_is_needed_where_there_is_one(tmp_path: Path, model: ScriptedModel) -> None:
    with serve(tmp_path, model, MERGEMILL_ENV_TOKEN="secret") as url:
        assert get(url, "/health")[0] == 200
        for headers in ({}, {"authorization": "Bearer wrong"}):
            status, answer = post(url, "/reset", {}, **headers)
            assert (status, answer["error"]) == (401, "the token is missing or wrong")
        assert post(url, "/reset", {}, authorization="Bearer secret")[0] == 200


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("--host", "0.0.0.0"), 2, "anyone who reaches 0.0.0.0 could spend your money (set --token)"),  # noqa: S104
        (("--profile", "x"), 2, "--profile: x is unknown"),
        (("--domain", "nowhere"), 3, "there is no domain pack nowhere"),
        (("--seeds", "none.json"), 3, "there is no file or folder none.json"),
        (("--llm", "off"), 2, "a simulator is needed"),
        (("--out", "."), 3, ". is no folder of an earlier run"),
        (("--token", " "), 2, "--token is empty"),
    ],
)
def test_bad_options_are_a_line(tmp_path: Path, words: tuple[str, ...], code: int, line: str) -> None:
    write_seeds(tmp_path / "seeds.json", range(1))
    given = ("--seeds", "seeds.json", "--domain", "retail", "--llm", "http://127.0.0.1:9/v1", "--model", "m")
    done = run_mergemill("simulate", "env", *given, *words, cwd=tmp_path)
    assert (done.exit_code, line in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


def test_seeds_that_begin_with_nobody_are_left_out(tmp_path: Path, model: ScriptedModel) -> None:
    seed = make_seed(0)
    silent = {**seed, "conversations": [call("find_user_id_by_email", {"email": "a@b.org"}), seed["conversations"][4]]}
    (tmp_path / "seeds.json").write_text(json.dumps([silent, seed, {"x": 1}]))
    with serve(tmp_path, model, "--episode-rewrites", "0") as url:
        assert [task["sample_index"] for task in get(url, "/tasks")[1]] == [0]
        assert post(url, "/reset", {"seed": 5})[1]["observation"].startswith("Hello, this is case number 0")
    (tmp_path / "seeds.json").write_text(json.dumps([silent]))
    words = ("--seeds", "seeds.json", "--domain", "retail", "--llm", model.url, "--model", "m", "--out", "other")
    done = run_mergemill("simulate", "env", *words, cwd=tmp_path)
    assert (done.exit_code, "has no seed that begins with a person's message" in done.stderr) == (3, True)


def test_64_episodes_at_once_over_http(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Turn:
        turn = play(request)
        return turn if is_judge(request) else Turn(text=turn.text, delay=0.05)

    def live(number: int) -> tuple[str, float]:
        _, opened = post(url, "/reset", {"seed": number})
        said = post(url, "/step", {"episode": opened["episode"], "text": "Your email?", "turn": 0})[1]
        ended = post(url, "/step", {"episode": opened["episode"], "text": "Done.", "turn": 1})[1]
        return said["observation"], ended["reward"]

    write_seeds(tmp_path / "seeds.json", range(64))
    with ScriptedModel(answer) as model, serve(tmp_path, model, "--episode-rewrites", "0") as url:
        started = time.monotonic()
        with ThreadPoolExecutor(64) as threads:
            results = list(threads.map(live, range(64)))
        seconds = time.monotonic() - started
    assert results == [(f"It is ana{n}@example.org, and the order is #W{4_000_000 + n}.", 1.0) for n in range(64)]
    assert seconds < 64 * 2 * 0.05, "they ran one after the other"


def test_a_tool_call_in_text_is_answered_over_http(tmp_path: Path, model: ScriptedModel) -> None:
    with serve(tmp_path, model, "--profile", "simia") as url:
        _, opened = post(url, "/reset", {"seed": 0})
        assert opened["system"] == "You serve the customers of a shop."
        assert post(url, "/step", {"episode": opened["episode"], "text": tag(FIND)})[1]["observation"] == "ana_case_0"
