"""Runs of the tests per task: by kind, of the certificate, and whose exploits it relies on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import task_runs
from mergemill.cli.queries.change_report import format_certificate, format_runs
from taskdb.artifacts import Artifacts
from taskdb.queries import tasks as queries
from taskdb.queries.runs import iter_certified_runs
from taskdb.records import ExploitReference, RunVariant, Task
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import make_url

VARIANTS = (RunVariant.GOLD, RunVariant.TEST_ONLY, RunVariant.GOLD, RunVariant.TEST_ONLY, RunVariant.CONTROL)


def fill(store: Store, artifacts: Artifacts | None = None) -> list[Task]:
    """Add three tasks: one with exploits, one that relies on it, and one that is not certified."""
    tasks = []
    for number in (1, 2, 4):
        pull = records.make_pull_request(number)
        patches = {"gold_patch": artifacts.put(b"gold"), "test_patch": artifacts.put(b"tests")} if artifacts else {}
        candidate = records.make_candidate(pull, **patches)
        environment = records.make_environment(candidate)
        runs = tuple(records.make_test_run(variant=variant) for variant in VARIANTS)
        verification = records.make_verification(environment, runs=runs)
        task = records.make_task(verification, candidate)
        store.add_mined_changes((pull, candidate, 0.0))
        store.add(environment, verification, task)
        tasks.append(task)
    first, second, _ = tasks
    exploits = {"stray-file": 0.0, "conftest": 0.0}
    store.add(records.make_certificate(first, exploits=exploits, evaluations=9, environment_family="a"))
    reference = ExploitReference(task=first.id, name=first.name)
    relying = records.make_certificate(second, exploits_of=reference, evaluations=7, environment_family="a")
    store.add(relying)
    return tasks


def test_the_runs_of_a_task_are_those_of_its_verification_and_its_certificate(db: str, tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    with Store.open(db) as store:
        first, second, third = fill(store, artifacts)
        counts = {row["task"]: row for row in iter_certified_runs(store)}
        assert counts.keys() == {first.id, second.id}
        kinds = {"control": 1, "gold": 2, "test-only": 2}
        assert counts[first.id] == {
            "task": first.id,
            "name": first.name,
            "verification": kinds,
            "certificate": 9,
            "exploits": 2,
            "submissions": 2,
            "exploits_of": None,
            "total": 14,
        }
        relying = {"certificate": 7, "exploits": 0, "submissions": 0, "exploits_of": first.name, "total": 12}
        assert counts[second.id] == counts[first.id] | {"task": second.id, "name": second.name} | relying
        assert queries.look_up_change(store, first.name)[1]["runs"] == [counts[first.id]]
        (uncertified,) = queries.look_up_change(store, third.name)[1]["runs"]
        assert (uncertified["certificate"], uncertified["total"]) == (None, 5)
        shown = queries.look_up_task(store, artifacts, second.id)[1]["certificate"]
        assert (shown["exploits"], shown["exploits_of"]) == ({}, {"task": first.id, "name": first.name})
        assert queries.look_up_task(store, artifacts, third.id)[1]["certificate"] is None


def test_runs_are_shown_in_a_line(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        first, second, third = fill(store)
        lines = [format_runs(queries.look_up_change(store, task.name)[1]["runs"][0]) for task in (first, second, third)]
    kinds = "verification 5 (1 control, 2 gold, 2 test-only)"
    assert lines == [
        f"runs of {first.name}: 14; {kinds}, certificate 9 (2 exploits)",
        f"runs of {second.name}: 12; {kinds}, certificate 7 (relies on the exploits of {first.name})",
        f"runs of {third.name}: 5; {kinds}",
    ]


def test_a_certificate_is_shown_in_a_line() -> None:
    certificate = {
        "gold": [1.0, 1.0],
        "noop": 0.0,
        "exploits": {"a": 0.0},
        "combined_exploits": {},
        "exploits_of": None,
        "evaluations": 8,
    }
    assert format_certificate(certificate) == "gold 1, 1; no-op 0; 1 exploit; 8 runs"
    combined = {"exploits": {"a": 0.0, "b": 0.0, "c": 0.0}, "combined_exploits": {"combined": ("a", "b")}}
    shown = format_certificate(certificate | combined)
    assert shown == "gold 1, 1; no-op 0; 3 exploits in 2 submissions; 8 runs"
    relying = certificate | {"exploits": {}, "exploits_of": {"task": "0", "name": "first"}}
    assert format_certificate(relying) == "gold 1, 1; no-op 0; relies on the exploits of first; 8 runs"
    shared = format_certificate(certificate | {"gold_of": {"task": "0", "name": "first"}})
    assert shared == "gold 1, 1 (the first its own, the others of first); no-op 0; 1 exploit; 8 runs"
    assert format_certificate(None) == "none"


def test_the_runs_of_a_database_have_a_median_and_a_maximum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = make_url(tmp_path)
    with Store.open(url) as store:
        fill(store)
    task_runs.main(["--db", url])
    shown = capsys.readouterr().out
    assert "2 certified tasks: median 13.0, maximum 14 runs; 1 with exploits of their own, 1 rely on those" in shown
    task_runs.main(["--db", url, "--json"])
    *rows, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert [row["total"] for row in rows] == [14, 12]
    assert summary == {"tasks": 2, "median": 13.0, "maximum": 14, "with_exploits": 1, "relying": 1}


def test_an_empty_database_has_no_median() -> None:
    assert task_runs.summarize([]) == {"tasks": 0, "median": None, "maximum": None, "with_exploits": 0, "relying": 0}
