"""The whole path on the planted corpus: 12 walks, five rounds, nine certified chains and three with two answers."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli import run_mergemill, start_mergemill
from tests.explorers.planted import AMBIGUOUS, CHAINS
from tests.explorers.scripted import ROUNDS, open_scripted_explorer
from tests.mergemill.explore.running import FAST, explore, index_planted, list_records
from tests.samplers import scripted_model

N_KILLS = 4


@pytest.fixture(autouse=True, scope="module")
def large_pieces() -> Any:
    """Answers come in few pieces: how streams are cut is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripted_model, "PIECE_TOKENS", 1000)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    index_planted(folder)
    with open_scripted_explorer() as model:
        done = explore("run", folder, model.url, "--seeds", "seeds.txt")
        assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys.values()) == {1}
        assert len(model.requests) == model.paid == done.lines[-1]["requests"]
    (folder / "events.json").write_text(done.stdout)
    return folder


def list_questions(folder: Path, *words: str) -> list[dict[str, Any]]:
    return run_mergemill("explore", "list", *words, "--json", cwd=folder).lines


def test_nine_chains_are_certified_and_three_are_not_unique(whole: Path) -> None:
    ambiguous = {CHAINS[number].seed for number in AMBIGUOUS}
    walks = {
        row["name"]: row["seed"] for row in run_mergemill("explore", "list", "--of", "walks", "--json", cwd=whole).lines
    }
    assert len(walks) == len(CHAINS)
    rejected = {walks[row["name"].rpartition(".")[0]] for row in list_questions(whole, "--reason", "not-unique")}
    assert rejected == ambiguous
    best = list_questions(whole, "--best")
    assert {walks[row["name"].rpartition(".")[0]] for row in best} == set(walks.values()) - ambiguous
    assert all(row["round"] >= ROUNDS - 1 for row in best)
    answers = {row["answer"] for _, row in list_records(whole)["Question"]}
    assert answers == {chain.answer for chain in CHAINS}


def test_counts_add_up_and_every_round_is_a_record(whole: Path) -> None:
    summary = json.loads((whole / "events.json").read_text().splitlines()[-1])
    steps = {step["step"]: step for step in summary["steps"]}
    assert {name: (step["found"], step["left"]) for name, step in steps.items()} == {
        "walk": (12, 0),
        "write": (12, 0),
        "evolve": (9 * ROUNDS, 0),
        "gate": (12 + 9 * ROUNDS, 0),
    }
    rounds = Counter(row["round"] for row in list_questions(whole))
    assert rounds == {0: 12, **dict.fromkeys(range(1, ROUNDS + 1), 9)}
    funnel = run_mergemill("funnel", "--of", "questions", "--json", cwd=whole).lines
    assert [(row["step"], row["in"]) for row in funnel if "step" in row] == [
        ("walk", 12),
        ("write", 12),
        ("evolve", 9 * ROUNDS),
        ("gate", 12 + 9 * ROUNDS),
    ]
    curves = [row for row in funnel if "step" not in row]
    turns = [row["turns"] for row in curves]
    assert turns == sorted(turns)
    assert (turns[0], turns[-1]) == (3.0, 3.0 + ROUNDS)
    assert (curves[0]["turns_change"], curves[-1]["turns_change"]["difference"]) == (None, ROUNDS)
    assert curves[-1]["turns_change"]["low"] == curves[-1]["turns_change"]["high"] == ROUNDS
    assert "turns change" in run_mergemill("funnel", "--of", "questions", cwd=whole).stdout


def test_a_certificate_has_what_the_gates_found(whole: Path) -> None:
    best = list_questions(whole, "--best")[0]
    shown = run_mergemill("explore", "show", best["name"].rpartition(".")[0], "--json", cwd=whole).json
    assert (shown["name"], shown["status"]) == (best["name"], "certified")
    certificate = shown["certificate"]
    assert [gate["name"] for gate in certificate["gates"]][:2] == ["support", "quotes"]
    assert [solver["attempts"] for solver in certificate["solvers"]] == [1]
    assert {call["tool"] for call in certificate["path"]} == {"search", "browse"}
    assert all(len(call["result"]) == 64 for call in certificate["path"])
    assert certificate["n_path_calls"] == len(certificate["path"])
    assert set(certificate["evidence"]) == {clue["page"] for clue in shown["clues"] if clue["operation"] != "remove"}
    assert [rival["origin"] for rival in certificate["rivals"]] == ["agent"]
    assert certificate["rivals"][0]["fails"] in [clue["text"] for clue in shown["clues"]]
    operations = Counter(clue["operation"] for clue in shown["clues"])
    assert operations["blur"] >= 3


def test_why_has_the_story_of_a_chain(whole: Path) -> None:
    [name] = [row["name"] for row in list_questions(whole, "--reason", "not-unique") if row["corpus_name"]][:1]
    story = run_mergemill("explore", "why", name, "--json", cwd=whole).json
    assert [(event["step"], event["ok"]) for event in story["events"]] == [
        ("walk", True),
        ("write", True),
        ("gate", False),
    ]
    assert story["events"][-1]["reason"] == "not-unique"
    log = run_mergemill("explore", "why", name, "--log", cwd=whole)
    assert '"kind": "rival"' in log.stdout
    assert run_mergemill("why", name, "--json", cwd=whole).json == story
    by_seed = run_mergemill("explore", "why", CHAINS[0].seed, "--json", cwd=whole).json
    assert len(by_seed["events"]) == 2 + 2 * (ROUNDS + 1) - 1
    assert run_mergemill("explore", "why", "nothing", cwd=whole).exit_code == 3


def test_rows_are_exported_and_read_again(whole: Path, tmp_path: Path) -> None:
    done = run_mergemill("explore", "export", "--out", str(tmp_path / "rows"), "--with-pages", cwd=whole)
    assert (done.exit_code, done.stdout) == (0, f"9 questions, 300 pages written to {tmp_path}/rows\n")
    rows = [json.loads(line) for line in (tmp_path / "rows" / "questions.jsonl").read_text().splitlines()]
    assert {"id", "question", "answer", "aliases", "clues", "corpus", "certificate"} <= set(rows[0])
    words = ("--format", "webexplorer", "--out", str(tmp_path / "short"))
    assert run_mergemill("explore", "export", *words, cwd=whole).exit_code == 0
    short = [json.loads(line) for line in (tmp_path / "short" / "questions.jsonl").read_text().splitlines()]
    assert short == [{name: row[name] for name in ("id", "question", "answer")} for row in rows]
    index_planted(tmp_path)
    wrong = {**rows[0], "name": "lost", "answer_page": "nowhere"}
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, wrong, {"answer": "x"}]))
    words = ("explore", "import", "in.jsonl", "--corpus", "planted", "--json")
    first = run_mergemill(*words, cwd=tmp_path)
    assert (first.exit_code, first.json) == (3, {"questions": 9, "left_out": 2})
    assert first.stderr.splitlines() == [
        "mergemill: lost: the corpus has no page nowhere",
        "mergemill: in.jsonl:11: field question is missing",
    ]
    assert run_mergemill(*words, cwd=tmp_path).json == {"questions": 0, "left_out": 2}
    imported = {row["text"]: row for _, row in list_records(tmp_path)["Question"]}
    for row in rows:
        assert imported[row["question"]]["clues"] == row["clues"]
        assert imported[row["question"]]["answer"] == row["answer"]


def test_a_run_again_does_nothing(whole: Path) -> None:
    before = list_records(whole)
    with open_scripted_explorer() as model:
        done = explore("run", whole, model.url, "--seeds", "seeds.txt")
        assert (done.exit_code, model.requests) == (0, [])
    assert list_records(whole) == before


def test_steps_alone_and_kills_give_the_same_records_and_pay_nothing_twice(tmp_path: Path) -> None:
    expected, killed = tmp_path / "expected", tmp_path / "killed"
    for folder in (expected, killed):
        folder.mkdir()
        index_planted(folder, seeds=4)
    with open_scripted_explorer() as model:
        explore("walk", expected, model.url, "--seeds", "seeds.txt")
        explore("write", expected, model.url)
        explore("gate", expected, model.url)
        explore("evolve", expected, model.url, "--explore-rounds", "1")
        done = explore("gate", expected, model.url)
        assert done.exit_code == 0, done.stderr
        paid = set(model.paid_keys)
    draw = random.Random(5)
    words = ("explore", "run", "--corpus", "planted", "--seeds", "seeds.txt", "--rounds", "1", "--model", "scripted")
    with open_scripted_explorer() as model:
        for number in range(N_KILLS):
            least = len(model.requests) + draw.randrange(4, 18)
            with start_mergemill(*words, "--llm", model.url, cwd=killed, **FAST) as command:
                deadline = time.monotonic() + 60
                while len(model.requests) < least and command.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.005)
            assert len(model.requests) >= least, number
        done = explore("run", killed, model.url, "--seeds", "seeds.txt", "--rounds", "1")
        assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys) == paid
        assert set(model.paid_keys.values()) == {1}
    assert list_records(killed) == list_records(expected)
