from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.instances import (
    LOOKED_AT,
    InstanceResult,
    draw_instances,
    format_share,
    load_results,
    main,
    render_halves,
    render_table,
    write_raw,
)
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from miner.instances import parse_instance
from taskdb.artifacts import Artifacts
from taskdb.records import FailureKind, PublishedLists, RunVariant, TestRun
from taskdb.store import Store
from tests import records
from tests.helpers import TinyRepo

PATCH = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"


def make_result(verdict: str, language: str = "go", **fields: Any) -> InstanceResult:
    return InstanceResult(**({"name": "a__b-1", "language": language, "verdict": verdict, "detail": ""} | fields))


def make_row(name: str, commit: str = "0" * 40, **fields: Any) -> str:
    row = {"instance_id": name, "repo": "ada/greet", "base_commit": commit, "problem_statement": "wrong"}
    row |= {"patch": PATCH.format("g.py"), "test_patch": PATCH.format("test_g.py"), "FAIL_TO_PASS": ["t.py::a"]}
    return json.dumps(row | fields) + "\n"


def test_shares_refer_to_finished_tasks() -> None:
    rows = [
        make_result("exact"),
        make_result("superset"),
        make_result("build: no-plan"),
        make_result("waiting"),
        make_result("exact", "rust"),
    ]
    lines = list(render_table(rows))
    assert lines[2] == "| go | 3 | 2 | 1 of 3, 33% (6%-79%) | 0 | 0 | 0 | 1 | 0 | 0 |"
    assert lines[4].startswith("| all | 4 | 3 | 2 of 4, 50%")
    assert lines[-2:] == ["- go: build: no-plan: 1", "- go: waiting: 1"]


def test_there_is_no_share_of_zero_tasks() -> None:
    assert format_share(0, 0) == "-"


def test_forms_of_exact_are_counted_apart_and_together() -> None:
    rows = [make_result(verdict) for verdict in ("exact", "exact-by-file", "exact-by-name", "superset")]
    lines = list(render_table(rows))
    assert "| all | 4 | 4 | 1 of 4, 25% (5%-70%) | 1 | 0 | 1 | 1 | 0 | 0 |" in lines
    assert "Exact in any form: 3 of 4, 75% (30%-95%)." in lines


def test_tasks_that_nobody_had_looked_at_have_their_own_table_and_all_count() -> None:
    rows = [make_result("exact"), make_result("waiting"), *[make_result("exact", was_looked_at=True)] * 3]
    rows.append(make_result("waiting", was_looked_at=True))
    text = "\n".join(render_halves(rows))
    fresh, known = text.split("## Looked at")
    assert "| all | 2 | 1 | 1 of 2, 50%" in fresh
    assert "| all | 3 | 3 | 3 of 3, 100%" in known
    assert "Looked at" not in "\n".join(render_halves(rows[:2]))


def test_causes_are_counted_by_list_and_side() -> None:
    rows = [
        make_result("different", causes={"FAIL_TO_PASS missing network": 2, "PASS_TO_PASS extra unknown": 5}),
        make_result("subset", causes={"FAIL_TO_PASS missing network": 1}),
    ]
    lines = list(render_table(rows))
    assert "| network | 3 | 0 | 0 | 0 |" in lines
    assert "| unknown | 0 | 0 | 0 | 5 |" in lines
    assert not any(line.startswith("| flaky") for line in lines)


def test_tasks_are_drawn_in_the_order_of_their_hashes_without_known_ones() -> None:
    rows = [parse_instance(make_row(f"a__b-{number}")) for number in range(30)]
    drawn = draw_instances(rows, 30, "word", {"a__b-3"})
    hashes = [hashlib.sha256(f"word:{name}".encode()).hexdigest() for name in drawn]
    assert hashes == sorted(hashes)
    assert (len(drawn), "a__b-3" in drawn) == (29, False)
    assert draw_instances(rows[::-1], 5, "word", {"a__b-3"}) == drawn[:5]
    assert draw_instances(rows, 30, "other", {"a__b-3"}) != drawn


def test_only_tasks_with_their_commit_in_a_small_clone_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = TinyRepo(tmp_path / "clones" / "ada__greet").commit("Start", {"g.py": "a = 1\n"})
    rows = tmp_path / "rows.jsonl"
    rows.write_text(make_row("a__b-1", commit) + make_row("a__b-2") + make_row("a__b-3", commit, repo="ada/gone"))
    arguments = [str(rows), "--draw", "3", "--salt", "s", "--clones", str(tmp_path / "clones")]
    assert main(arguments) == 0
    assert capsys.readouterr().out == "a__b-1\n"
    assert main([*arguments, "--max-clone-mb", "0.0001"]) == 0
    assert capsys.readouterr().out == "\n"


def test_raw_results_have_no_test_ids(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    detail = "missing 1: t.py::a"
    write_raw([make_result("subset", detail=detail), make_result("build: no-plan", detail="no plan")], path, "abc")
    first, second = map(json.loads, path.read_text().splitlines())
    assert (first["name"], first["verdict"], first["mergemill"], "detail" in first) == (
        "a__b-1",
        "subset",
        "abc",
        False,
    )
    assert (second["verdict"], second["detail"]) == ("build: no-plan", "no plan")


def test_verified_tasks_are_compared_again_with_their_causes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = f"sqlite:///{tmp_path}/m.db"
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")

    def make_run(variant: RunVariant, status: str) -> TestRun:
        report = EvaluationReport(outcomes={"t.py::a": Outcome(status=OutcomeStatus(status))}, uncollected={})
        return records.make_test_run(
            variant=variant, report=artifacts.put(report.to_bytes()), log=artifacts.put_text("")
        )

    pull = records.make_pull_request(name="a__b-1")
    published = PublishedLists(FAIL_TO_PASS=("t.py::a", "t.py::b"), PASS_TO_PASS=())
    candidate = records.make_candidate(pull, name="a__b-1", published=published)
    environment = records.make_environment(candidate)
    runs = (make_run(RunVariant.TEST_ONLY, "failed"), make_run(RunVariant.GOLD, "passed"))
    lists = {"FAIL_TO_PASS": (("t.py::a", FailureKind.ASSERTION),), "PASS_TO_PASS": (), "eval_files": ("t.py",)}
    verification = records.make_verification(environment, name="a__b-1", runs=runs, **lists)
    with Store.open(db) as store:
        store.add_mined_changes((pull, candidate, 0.1))
        store.add(environment, verification)
        rows = [parse_instance(make_row("a__b-1")), parse_instance(make_row("a__b-2"))]
        (result,) = load_results(store, rows, artifacts, {"a__b-1"})
    assert (result.verdict, result.was_looked_at, result.detail) == ("subset", True, "missing 1: t.py::b")
    assert result.causes == {"FAIL_TO_PASS missing unknown": 1}
    file, raw = tmp_path / "rows.jsonl", tmp_path / "raw.jsonl"
    file.write_text(make_row("a__b-1"))
    assert main([str(file), "--db", db, "--raw", str(raw), "--commit", "abc", "--tasks"]) == 0
    assert "## Nobody had looked at" in capsys.readouterr().out
    assert json.loads(raw.read_text())["verdict"] == "subset"


def test_the_looked_at_file_has_names_alone() -> None:
    names = LOOKED_AT.read_text().split("\n")[:-1]
    assert names == sorted(set(names))
    assert all("__" in name and " " not in name for name in names)


def test_recorded_results_are_of_tasks_that_nobody_had_looked_at() -> None:
    known = set(LOOKED_AT.read_text().split())
    results = [json.loads(line) for line in (LOOKED_AT.parent / "results.jsonl").read_text().splitlines()]
    assert results
    assert not known & {result["name"] for result in results}
    assert not any(result["was_looked_at"] for result in results)
    assert all(result["mergemill"] for result in results)


def test_drawn_tasks_are_new_when_they_are_drawn_and_looked_at_afterwards() -> None:
    known = set(LOOKED_AT.read_text().split())
    names: list[str] = []
    for path in (LOOKED_AT.parent / "draws").glob("*.jsonl"):
        results = [json.loads(line) for line in path.read_text().splitlines()]
        assert {result["mergemill"] for result in results} == {path.stem}
        assert not any(result["was_looked_at"] for result in results)
        names += [result["name"] for result in results]
    assert len(names) >= 60
    assert len(names) == len(set(names))
    assert set(names) <= known
