"""The status file of a run: written while it runs, read by the page."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from core.errors import InputError
from mergemill.execution import run_status
from mergemill.execution.progress import MessageProgress
from mergemill.execution.run_status import RunStatusFile, list_runs
from taskdb.records import Kind, Stage
from taskdb.records.work import StageResult
from tests import records
from tests.cli import run_mergemill
from tests.sample import make_sample


def make_results() -> list[StageResult]:
    pull = records.make_pull_request()
    candidate = records.make_candidate(pull)
    rejection = records.make_rejection(candidate, Stage.BUILD, "build-failed")
    results = [(Stage.MINE, candidate, None), (Stage.BUILD, rejection, None), (Stage.DERIVE, rejection, Kind.REVIEW)]
    return [
        StageResult(stage=stage, result=record, source=pull.source, name=pull.name, seconds=1.0, kind=kind)
        for stage, record, kind in results
    ]


def test_a_run_writes_its_counts_and_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_status, "HEARTBEAT_SECONDS", 0.02)
    shown = MessageProgress()
    with RunStatusFile(shown, tmp_path, "run", ["git:greet"]) as progress:
        progress.work.n_expected = 4
        progress.work.start_step("2", Stage.BUILD, "ada__greet-2")
        for result in make_results():
            progress.report_result(result)
        progress.work.end_change("2")
        progress.work.start_step("3", Stage.BUILD, "ada__greet-3", "node-a")
        deadline = time.monotonic() + 10
        while not (runs := list_runs(tmp_path)) or not runs[0]["events"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert runs[0]["state"] == "running"
    assert runs[0]["done"] == 1
    assert runs[0]["total"] == 4
    assert [(step["name"], step["place"]) for step in runs[0]["running"]] == [("ada__greet-3", "node-a")]
    assert runs[0]["seconds_left"] > 0
    (run,) = list_runs(tmp_path)
    assert run["state"] == "finished"
    assert run["stages"]["build"] == {"passed": 0, "rejected": 1, "failed": 0}
    assert [event["stage"] for event in run["events"]] == ["build", "derive"]
    assert shown.results[Stage.BUILD, False] == 1


@pytest.mark.parametrize(("error", "reason"), [(InputError("no clone"), "InputError"), (KeyError("x"), "bug")])
def test_a_failure_is_counted_and_is_an_event(tmp_path: Path, error: Exception, reason: str) -> None:
    shown = MessageProgress()
    with RunStatusFile(shown, tmp_path, "build", []) as progress:
        progress.report_failure(Stage.BUILD, "ada__greet-2", error)
    (run,) = list_runs(tmp_path)
    assert run["stages"]["build"] == {"passed": 0, "rejected": 0, "failed": 1}
    (event,) = run["events"]
    assert (event["stage"], event["name"], event["ok"], event["reason"]) == ("build", "ada__greet-2", False, reason)


@pytest.mark.parametrize(("error", "state"), [(KeyboardInterrupt(), "stopped"), (RuntimeError("x"), "failed")])
def test_a_run_that_ends_otherwise_is_marked(tmp_path: Path, error: BaseException, state: str) -> None:
    with pytest.raises(type(error)), RunStatusFile(MessageProgress(), tmp_path, "build", []):
        raise error
    assert list_runs(tmp_path)[0]["state"] == state


def test_a_run_that_was_killed_is_lost(tmp_path: Path) -> None:
    with RunStatusFile(MessageProgress(), tmp_path, "run", []) as progress:
        path = tmp_path / f"{progress.id}.json"
        text = path.read_text()
    path.write_text(text)
    later = time.time() + run_status.SILENT_SECONDS + 5
    assert list_runs(tmp_path)[0]["state"] == "running"
    assert list_runs(tmp_path, now=lambda: later)[0]["state"] == "lost"


def test_files_of_others_are_ignored_and_old_ones_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_status, "MAX_FILES", 2)
    (tmp_path / "z.json").write_text("{}")
    for year in (2001, 2002, 2003):
        (tmp_path / f"{year}.json").write_text("[]")
    with RunStatusFile(MessageProgress(), tmp_path, "run", []) as progress:
        pass
    assert [run["id"] for run in list_runs(tmp_path)] == [progress.id]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_stage_of_the_command_line_leaves_its_status(tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    done = run_mergemill("mine", "git:greet", cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    (path,) = (tmp_path / "mergemill-store" / "runs").glob("*.json")
    status = json.loads(path.read_text())
    assert status["state"] == "finished"
    assert status["command"] == "mine"
    assert sum(status["stages"]["mine"].values()) > 2
