"""Failures of the endpoint and kills of the program: the same rows as of a calm run, and no call paid twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli import open_mergemill, start_mergemill
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import (
    answer_well,
    find_case,
    is_verdict,
    make_random,
    read_lines,
    simulate,
    write_answer,
    write_seeds,
)
from tests.simulators.test_known_errors import translate

N_SEEDS = 8
PER_SEED = ("--per-seed", "2")
STORM = ("429", "500", "cut", "unfinished", "refuse", "html", "hang")
"""What goes wrong with the first request of a call; the second succeeds."""
WRITTEN = ("trajectories.jsonl", "dropped.jsonl", "seeds.jsonl", "README.md")


def list_outputs(folder: Path) -> dict[str, str]:
    """Return the text of every file of a run but the ledger, whose order and times vary."""
    texts = {name: (folder / name).read_text() for name in WRITTEN}
    for path in sorted((*folder.rglob("train.jsonl"), *folder.rglob("*/README.md"))):
        texts[path.relative_to(folder).as_posix()] = path.read_text()
    return texts


def answer_oddly(request: ModelRequest) -> Turn:
    """Answers that are well, empty, cut off and in another language, by the call alone."""
    if is_verdict(request):
        return answer_well(request)
    drawn = make_random(request)
    kind = drawn.choice(("well", "well", "well", "empty", "truncated", "foreign"))
    text = write_answer(drawn, failing="One call fails on the way" in json.dumps(request.body))
    if kind == "empty":
        return Turn(text="")
    if kind == "truncated":
        return Turn(text=text[:600], finish="length")
    return Turn(text=translate(text) if kind == "foreign" else text)


def answer_in_a_storm(request: ModelRequest) -> Turn:
    """The same answers, of which the first request fails in one of the ways of STORM; each key has its own."""
    turn = answer_oddly(request)
    number = int(request.headers["idempotency-key"][:8], 16)
    fault = STORM[number % len(STORM)] if number % 3 else ""
    if fault and request.headers["idempotency-key"] not in SEEN:
        SEEN.add(request.headers["idempotency-key"])
        return Turn(text=turn.text, finish=turn.finish, fault=fault)
    return turn


SEEN: set[str] = set()


class StormyModel(ScriptedModel):
    """A server that decides for each request of a key whether it fails."""

    def find_turn(self, request: ModelRequest) -> Turn:
        return self.answer(request)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calm")
    write_seeds(folder / "seeds.json", range(N_SEEDS))
    with ScriptedModel(answer_oddly) as model:
        done = simulate(folder, model, *PER_SEED)
        assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys.values()) == {1}
        assert len(model.paid_keys) == len(read_lines(folder / "out" / "calls.jsonl"))
    assert 0 < done.lines[-1]["kept"] < 2 * N_SEEDS
    return folder


def test_failures_of_the_endpoint_change_no_row_and_cost_nothing(calm: Path, tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(N_SEEDS))
    SEEN.clear()
    with StormyModel(answer_in_a_storm) as model:
        done = simulate(tmp_path, model, *PER_SEED, "--llm-timeout", "2")
        assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys.values()) == {1}
        assert len(model.requests) > len(model.paid_keys)
    assert list_outputs(tmp_path / "out") == list_outputs(calm / "out")
    assert done.lines[-1]["failed_requests"] > 0


def kill_at_random(folder: Path, model: ScriptedModel, moments: random.Random, kills: int) -> int:
    """Run the command and kill it until it was killed so often, or is done; return how often it was killed."""
    words = ["--seeds", "seeds.json", "--domain", "retail", "--out", "out", "--llm", model.url, "--model", "scripted"]
    command = ("simulate", "sft", *words, *PER_SEED, "--workers", "3")
    for killed in range(kills):
        with start_mergemill(*command, cwd=folder) as driver:
            n_before = len(model.requests)
            until = time.monotonic() + 60
            while len(model.requests) < n_before + 1 and driver.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            try:
                driver.wait(moments.uniform(0, 0.3))
            except subprocess.TimeoutExpired:
                driver.kill()
            else:
                return killed
    return kills


def test_ten_kills_change_no_row_and_cost_nothing(calm: Path, tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(N_SEEDS))

    def answer_slowly(request: ModelRequest) -> Turn:
        turn = answer_oddly(request)
        return Turn(text=turn.text, finish=turn.finish, delay=0.01)

    with ScriptedModel(answer_slowly) as model:
        n_killed = kill_at_random(tmp_path, model, random.Random(5), 10)
        lines_before = len(read_lines(tmp_path / "out" / "calls.jsonl"))
        done = simulate(tmp_path, model, *PER_SEED)
        assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys.values()) == {1}
        paid = model.paid
    assert n_killed == 10
    assert 0 < lines_before < paid  # the kills came in the middle
    assert paid == len(read_lines(calm / "out" / "calls.jsonl"))
    assert list_outputs(tmp_path / "out") == list_outputs(calm / "out")


def test_a_line_that_a_kill_cut_is_written_again(calm: Path, tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(N_SEEDS))
    lines = (calm / "out" / "calls.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "calls.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:200])
    with ScriptedModel(answer_oddly) as model:
        done = simulate(tmp_path, model, *PER_SEED)
        assert (done.exit_code, model.paid) == (0, 1), done.stderr
        assert simulate(tmp_path, model, *PER_SEED).lines[-1]["requests"] == 0
    assert list_outputs(tmp_path / "out") == list_outputs(calm / "out")
    again = (tmp_path / "out" / "calls.jsonl").read_bytes().splitlines(keepends=True)
    assert (len(again), again[:-1]) == (len(lines), lines[:-1])


def test_a_kill_before_the_first_answer_leaves_a_folder_to_continue(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", [1])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".lock").touch()
    with ScriptedModel(answer_well) as model:
        assert simulate(tmp_path, model, "--per-seed", "1").exit_code == 0
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "notes.txt").write_text("keep")
        refused = simulate(tmp_path, model, "--per-seed", "1", "--out", "mine")
    assert (refused.exit_code, "mine is no folder of an earlier run" in refused.stderr) == (3, True)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_ctrl_c_ends_with_130_and_the_same_command_continues(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(4))
    command = ("simulate", "sft", "--seeds", "seeds.json", "--domain", "retail", "--out", "out")

    def answer(request: ModelRequest) -> Turn:
        turn = answer_well(request)
        return turn if is_verdict(request) or find_case(request) < 2 else Turn(text=turn.text, delay=0.2)

    with ScriptedModel(answer) as model:
        words = (*command, "--per-seed", "1", "--llm", model.url, "--model", "scripted")
        with open_mergemill(*words, cwd=tmp_path) as driver:
            while model.paid < 8:
                assert driver.process.poll() is None
                time.sleep(0.05)
            os.kill(driver.process.pid, signal.SIGINT)
            errors = driver.stderr.read()
            assert (driver.process.wait(30), "the same command continues" in errors) == (130, True), errors
        n_known = len(read_lines(tmp_path / "out" / "calls.jsonl"))
        assert 4 <= n_known < 8
        done = simulate(tmp_path, model, "--per-seed", "1")
        assert (done.exit_code, done.lines[-1]["kept"], done.lines[-1]["requests"]) == (0, 4, 8 - n_known)
        assert model.paid == 8


def test_a_dead_endpoint_leaves_what_is_there_and_the_same_command_goes_on(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(3))

    def answer(request: ModelRequest) -> Turn:
        return Turn(fault="400") if find_case(request) == 2 and not is_verdict(request) else answer_well(request)

    with ScriptedModel(answer) as model:
        done = simulate(tmp_path, model, "--per-seed", "1", "--workers", "1")
    summary = done.lines[-1]
    assert (done.exit_code, summary["answered"], summary["left"], summary["kept"]) == (3, 2, 1, 2), done.stderr
    assert "1 calls failed" in done.stderr
    assert [line["event"] for line in done.lines if line["event"] == "problem"] == ["problem"]
    with ScriptedModel(answer_well) as model:
        again = simulate(tmp_path, model, "--per-seed", "1")
        assert (again.exit_code, again.lines[-1]["kept"], again.lines[-1]["earlier"], model.paid) == (0, 3, 2, 1)


def test_a_wrong_key_stops_at_once(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(30))
    with ScriptedModel(answer_well, key="right") as model:
        done = simulate(tmp_path, model, "--per-seed", "5", "--workers", "1", MERGEMILL_LLM_KEY="wrong")
        assert (done.exit_code, model.requests) == (3, [])
    assert len(done.stderr.splitlines()) == 1
    assert "MERGEMILL_LLM_KEY" in done.stderr


def test_an_outage_ends_after_ten_failures_in_a_row(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(1))
    n_answered = Counter[str]()

    def answer(request: ModelRequest) -> Turn:
        n_answered["all"] += 1
        return answer_well(request) if n_answered["all"] <= 2 else Turn(fault="400")

    with ScriptedModel(answer) as model:
        done = simulate(tmp_path, model, "--per-seed", "60", "--workers", "1")
        assert len(model.requests) < 20
    assert (done.exit_code, done.lines[-1]["answered"], done.lines[-1]["left"]) == (3, 1, 59), done.stderr


def test_two_runs_at_once_do_not_share_a_folder(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(2))
    command = ("simulate", "sft", "--seeds", "seeds.json", "--domain", "retail", "--out", "out")
    with ScriptedModel(lambda request: Turn(text=answer_well(request).text, delay=0.1)) as model:
        words = (*command, "--per-seed", "1", "--llm", model.url, "--model", "scripted")
        with start_mergemill(*words, cwd=tmp_path) as driver:
            while not model.requests:
                assert driver.poll() is None
                time.sleep(0.05)
            second = simulate(tmp_path, model, "--per-seed", "1")
            assert second.exit_code == 3
            assert "another `mergemill simulate` writes to out" in second.stderr


def test_other_settings_are_other_calls(tmp_path: Path) -> None:
    """Whatever determines a call is part of its key; what only concerns the steps is not."""
    write_seeds(tmp_path / "seeds.json", range(1))
    words: list[Any] = ["--per-seed", "1", "--simulate-prefilter", "off"]
    paid = []
    with ScriptedModel(answer_well) as model:
        for more in ((), ("--simulate-temperature", "0.5"), ("--llm-answer-tokens", "8000"), ("--simulate-draw", "1")):
            assert simulate(tmp_path, model, *words, *more).exit_code == 0
            paid.append(model.paid)
        assert (
            simulate(tmp_path, model, *words, "--simulate-near-duplicates", "1", "--format", "messages").exit_code == 0
        )
        paid.append(model.paid)
        assert simulate(tmp_path, model, "--per-seed", "3", "--simulate-prefilter", "off").exit_code == 0
        paid.append(model.paid)
    assert paid == [1, 2, 3, 4, 4, 6]
