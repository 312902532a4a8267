"""Rounds of tester and checker with scripted verdicts: the score, the limits, and answers that cannot be used."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.samplers.scripted_model import ModelRequest, Turn
from tests.worlds.gates.test_world_gates import get_world
from tests.worlds.making.answers import answer, find_kind, open_scripted_model, read_prompt
from tests.worlds.making.models import open_models
from worlds.assessment.differences import describe_difference
from worlds.assessment.rounds import CallVerdict, WorldAssessment, WorldAssessor
from worlds.definitions import WorldDefinition
from worlds.examples.loading import load_example_world
from worlds.reasons import Reason
from worlds.server.service import WorldServer

LIBRARY = load_example_world("library_loans")
Reply = Callable[[ModelRequest], Turn]


def judge_in_turn(verdicts: Sequence[str]) -> Reply:
    """Return answers whose verdicts are these, one a call."""
    given: dict[str, str] = {}
    left = iter(verdicts)

    def reply(request: ModelRequest) -> Turn:
        if find_kind(request) != "checker":
            return answer(request)
        key = request.headers["idempotency-key"]
        verdict = given.setdefault(key, next(left) if key not in given else "")
        return Turn(text=json.dumps({"analysis": "So it is.", "verdict": verdict, "reason": "As the rules have it."}))

    return reply


def assess(
    server: WorldServer, folder: Path, reply: Reply, world: WorldDefinition = LIBRARY, **changes: Any
) -> tuple[WorldAssessment, list[ModelRequest]]:
    with open_scripted_model(reply) as model, open_models(model, folder, **changes) as (models, options, meter):
        with server.load(world) as served:
            done = WorldAssessor(world=served, models=models, options=options, meter=meter).assess()
        assert set(model.paid_keys.values()) == {1}
        return done, list(model.requests)


@pytest.mark.docker
def test_84_passes_a_warning_and_15_fails_are_kept_and_one_fail_more_is_not(
    server: WorldServer, tmp_path: Path
) -> None:
    verdicts = ["Pass"] * 84 + ["Warning"] + ["Fail"] * 15
    done, _ = assess(server, tmp_path / "kept", judge_in_turn(verdicts))
    assert (len(done.rounds), done.score, done.pass_rate) == (100, 0.85, 0.84)
    assert done.decide(0.85) == (None, "")
    calls = Counter(played.call.function for played in done.rounds)
    assert max(calls.values()) <= 10
    assert min(calls.values()) >= 5  # the tools are in balance
    assert Counter(played.call.case for played in done.rounds) == {"positive": 52, "negative": 48}
    done, _ = assess(server, tmp_path / "refused", judge_in_turn(["Fail", *verdicts[1:]]))
    reason, detail = done.decide(0.85)
    assert (done.score, done.pass_rate, reason) == (0.84, 0.83, Reason.LOW_SCORE)
    assert detail.startswith("0.840 of at least 0.85; failed: ")


@pytest.mark.docker
def test_no_tool_is_called_more_than_its_limit_even_where_rounds_are_left(server: WorldServer, tmp_path: Path) -> None:
    done, requests = assess(server, tmp_path, answer, worlds_calls_per_tool=2)
    assert set(Counter(played.call.function for played in done.rounds).values()) == {2}
    assert len(done.rounds) == 32
    last = read_prompt([request for request in requests if find_kind(request) == "tester"][-1])
    assert last.count('"type": "object", "properties"') <= 3  # of tools, only the one that is left


@pytest.mark.docker
def test_a_call_beyond_the_limit_and_an_unknown_tool_are_asked_again(server: WorldServer, tmp_path: Path) -> None:
    call = {"thought": "Again.", "function": "get_book", "parameters": {"book_id": "B-1"}, "case": "negative"}

    def reply(request: ModelRequest) -> Turn:
        if find_kind(request) != "tester":
            return answer(request)
        name = "get_book" if request.place == 0 else "get_books"
        return Turn(text=json.dumps({**call, "function": name}))

    done, requests = assess(server, tmp_path, reply, worlds_rounds=3, worlds_calls_per_tool=2)
    assert ([played.call.function for played in done.rounds], done.untested) == (["get_book", "get_book"], 1)
    messages = [str(request.body["messages"][-1]["content"]) for request in requests if find_kind(request) == "tester"]
    assert "get_book was called 2 times; choose one of" in messages[3]
    assert "there is no tool get_books" in messages[4]
    assert len(messages) == 5


@pytest.mark.docker
def test_the_tester_sees_no_code_and_the_checker_all_of_it(server: WorldServer, tmp_path: Path) -> None:
    _, requests = assess(server, tmp_path, answer, worlds_rounds=16, worlds_checker_model="other")
    for request in requests:
        text, is_checker = read_prompt(request), find_kind(request) == "checker"
        assert ("class Library" in text, "def __init__" in text) == (is_checker, is_checker)
        assert request.body["model"] == ("other" if is_checker else "scripted")
        assert request.body.get("temperature") == (0 if is_checker else None)
    checked = next(text for text in map(read_prompt, requests) if "Tool return_book" in text)
    assert "def return_book" in checked
    assert "def _release_copy" in checked
    assert "def get_book" not in checked


@pytest.mark.docker
def test_a_checker_without_a_verdict_counts_for_nothing_and_is_asked_five_times(
    server: WorldServer, tmp_path: Path
) -> None:
    def reply(request: ModelRequest) -> Turn:
        text = read_prompt(request)
        is_lost = find_kind(request) == "checker" and ("Tool get_book" in text or "Tool get_member" in text)
        return Turn(text="I would say it is fine.") if is_lost else answer(request)

    done, requests = assess(server, tmp_path, reply, worlds_rounds=16)
    assert (len(done.rounds), done.n_judged, done.score) == (16, 14, 1.0)
    assert len([request for request in requests if find_kind(request) == "checker"]) == 14 + 2 * 5
    lost = next(played for played in done.rounds if played.call.function == "get_book")
    assert (lost.verdict, lost.to_json()["verdict"], len(lost.keys)) == (None, None, 6)
    done, _ = assess(
        server, tmp_path / "2", lambda request: Turn(text="") if find_kind(request) == "checker" else answer(request)
    )
    assert done.decide(0.0)[0] is Reason.UNJUDGED


@pytest.mark.docker
def test_a_fault_fails_without_the_checker_and_the_rounds_go_on(server: WorldServer, tmp_path: Path) -> None:
    call = {
        "thought": "Take.",
        "function": "take_items",
        "parameters": {"item_id": "I-9", "count": 1},
        "case": "negative",
    }

    def reply(request: ModelRequest) -> Turn:
        if find_kind(request) == "tester":
            return Turn(text=json.dumps(call))
        return Turn(text=json.dumps({"analysis": "x", "verdict": "Pass", "reason": "y"}))

    done, requests = assess(server, tmp_path, reply, get_world("raises"), worlds_rounds=3)
    assert [played.verdict for played in done.rounds] == [CallVerdict.FAIL] * 3
    assert done.rounds[0].reason.startswith("raises: KeyError")
    assert {find_kind(request) for request in requests} == {"tester"}


def test_differences_name_each_place() -> None:
    before = {"a": {"x": 1, "y": [1]}, "b": 1}
    after = {"a": {"x": True, "y": [1, 2]}, "c": None}
    assert describe_difference(before, after).splitlines() == [
        "a.x: 1 -> true",
        "a.y: [1] -> [1, 2]",
        "b: 1 -> absent",
        "c: absent -> null",
    ]
    assert describe_difference(before, before) == "none"
