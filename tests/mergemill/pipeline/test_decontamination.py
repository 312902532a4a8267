"""Copies, end to end: lists of benchmarks and the database's own candidates, by the command line."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli import CommandResult, run_mergemill
from tests.helpers import TinyRepo
from tests.miner.conftest import START


def body(name: str, n: int = 8) -> str:
    return f"def {name}():\n" + "".join(f"    {name}_total_{i} = measure_{name}({i})\n" for i in range(n))


def add(repo: TinyRepo, number: int, name: str, *, path: str = "", lines: int = 8) -> None:
    """A pull request of its own, unless another one had the same name."""
    repo.commit(
        f"Let {name} measure its totals (#{number})",
        {
            path or f"pkg/{name}.py": body(name, lines),
            f"tests/test_{name}.py": f"def test_{name}():\n    assert {name}\n",
        },
    )


@pytest.fixture
def acme(tmp_path: Path) -> TinyRepo:
    repo = TinyRepo(tmp_path / "acme__widget")
    repo.commit("Begin the project", START)
    for number, name in enumerate(("red", "green", "blue"), 1):
        add(repo, number, name)
    return repo


@pytest.fixture
def fork(tmp_path: Path, acme: TinyRepo) -> TinyRepo:
    """Took green and half of blue's lines from `acme/widget`, in other files, and made black."""
    repo = TinyRepo(tmp_path / "evil__gadget")
    repo.commit("Begin the project", START)
    add(repo, 11, "green", path="lib/verdant.py")
    add(repo, 12, "blue", lines=3)
    add(repo, 13, "black")
    return repo


def verdicts(folder: Path) -> dict[str, str]:
    result = run_mergemill("sql", "SELECT name, reason, candidate FROM changes ORDER BY name", "--json", cwd=folder)
    return {row["name"]: row["reason"] or "candidate" for row in result.lines}


def records(folder: Path) -> dict[str, list[Any]]:
    with sqlite3.connect(folder / "mergemill.db") as db:
        of = ("source, name, result FROM change", "key, change FROM sketch", "name, reason, detail FROM event")
        return {what: db.execute(f"SELECT {what} ORDER BY 1, 2").fetchall() for what in of}


def mine(folder: Path, *words: str) -> CommandResult:
    done = run_mergemill("mine", "--json", *words, cwd=folder)
    assert done.exit_code == 0, done.stderr
    return done


def test_the_second_of_two_similar_changes_is_a_near_duplicate(acme: TinyRepo, fork: TinyRepo, tmp_path: Path) -> None:
    mine(tmp_path, "git:acme__widget", "git:evil__gadget")
    listed = verdicts(tmp_path)
    assert {name for name, verdict in listed.items() if verdict == "near-duplicate"} == {"evil__gadget-11"}
    assert listed["evil__gadget-12"] == listed["evil__gadget-13"] == listed["acme__widget-2"] == "candidate"
    why = run_mergemill("why", "evil__gadget-11", "--json", cwd=tmp_path).json
    similar = f"its patch has a similarity of 1.00 to that of acme__widget-2 (git:{tmp_path}/acme__widget)"
    assert why["events"][-1]["detail"] == similar
    funnel = run_mergemill("funnel", "--json", cwd=tmp_path).lines[0]
    assert funnel["rejected"] == {"no-base": 2, "near-duplicate": 1}


def test_mining_again_in_any_order_writes_nothing(acme: TinyRepo, fork: TinyRepo, tmp_path: Path) -> None:
    mine(tmp_path, "git:acme__widget", "git:evil__gadget")
    before = records(tmp_path)
    for words in (("git:acme__widget", "git:evil__gadget"), ("git:evil__gadget", "git:acme__widget")):
        assert mine(tmp_path, *words).lines[-1]["new"] == 0
        assert records(tmp_path) == before


def test_mining_in_parts_gives_the_same_records_as_at_once(acme: TinyRepo, fork: TinyRepo, tmp_path: Path) -> None:
    mine(tmp_path, "git:acme__widget", "git:evil__gadget")
    whole = verdicts(tmp_path)
    (tmp_path / "mergemill.db").unlink()
    for limit in "1", "2", "3":
        mine(tmp_path, "--limit", limit, "git:acme__widget")
    for limit in "1", "9":
        mine(tmp_path, "--limit", limit, "git:acme__widget", "git:evil__gadget")
    assert verdicts(tmp_path) == whole


def test_the_limit_counts_accepted_candidates(acme: TinyRepo, fork: TinyRepo, tmp_path: Path) -> None:
    mine(tmp_path, "git:acme__widget")
    fork.commit("Step aside", {"README": "x\n"})
    add(fork, 14, "red")
    mine(tmp_path, "--limit", "2", "git:evil__gadget")
    listed = verdicts(tmp_path)
    assert [listed.get(f"evil__gadget-{n}") for n in (14, 13, 12, 11)] == [
        "near-duplicate",
        "candidate",
        "candidate",
        None,
    ]


def test_a_superseded_change_is_not_compared(acme: TinyRepo, fork: TinyRepo, tmp_path: Path) -> None:
    mine(tmp_path, "git:acme__widget", "git:evil__gadget")
    (tmp_path / "list.txt").write_text("acme/widget\n")
    mine(tmp_path, "--benchmarks", "list.txt", "git:acme__widget", "git:evil__gadget")
    listed = verdicts(tmp_path)
    assert listed["acme__widget-2"] == "in-benchmark"
    assert listed["evil__gadget-11"] == "candidate"


def test_a_similarity_limit_of_one_accepts_copies(acme: TinyRepo, fork: TinyRepo, tmp_path: Path) -> None:
    allowed = ("--max-patch-similarity", "1", "--max-statement-similarity", "1")
    mine(tmp_path, *allowed, "git:acme__widget", "git:evil__gadget")
    assert verdicts(tmp_path)["evil__gadget-11"] == "candidate"
    mine(tmp_path, "git:evil__gadget", "git:acme__widget")
    assert verdicts(tmp_path)["evil__gadget-11"] == "near-duplicate"
    assert verdicts(tmp_path)["acme__widget-2"] == "candidate"


def test_a_list_is_read_from_the_settings_file(acme: TinyRepo, tmp_path: Path) -> None:
    (tmp_path / "bench.jsonl").write_text(json.dumps({"instance_id": "acme__widget-3"}) + "\n")
    (tmp_path / "mergemill.toml").write_text('benchmarks = ["bench.jsonl"]\n')
    mine(tmp_path, "git:acme__widget")
    assert verdicts(tmp_path)["acme__widget-3"] == "in-benchmark"
    why = run_mergemill("why", "acme__widget-3", cwd=tmp_path)
    assert "acme__widget-3 (bench.jsonl:1)" in why.stdout


def test_a_broken_list_ends_the_command_before_anything_is_mined(acme: TinyRepo, tmp_path: Path) -> None:
    (tmp_path / "bench.jsonl").write_text('{"instance_id": "acme__widget-3"}\n{\n')
    done = run_mergemill("mine", "--benchmarks", "bench.jsonl", "git:acme__widget", cwd=tmp_path)
    assert (done.exit_code, verdicts(tmp_path)) == (3, {})
    assert "bench.jsonl:2: not JSON" in done.stderr
    assert run_mergemill("mine", "--benchmarks", "nowhere", "git:acme__widget", cwd=tmp_path).exit_code == 3
