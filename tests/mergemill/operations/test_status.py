"""`mergemill status`: runs, what runs where, the queue, failures, disk and engine."""

from __future__ import annotations

import json
import os
import signal
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.errors import Transient
from mergemill.execution.progress import MessageProgress
from mergemill.execution.run_status import MAX_FILES, RunStatusFile, list_runs
from mergemill.operations.status import list_failures, select_runs
from taskdb.records import Stage
from taskdb.records.work import StageResult
from tests import records
from tests.cli import open_mergemill, run_mergemill
from tests.sample import make_sample


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database of two candidates, and the status of the run that mined them."""
    make_sample(tmp_path / "greet")
    assert run_mergemill("mine", "git:greet", cwd=tmp_path).exit_code == 0
    return tmp_path


def find_status(folder: Path, *words: str, **variables: str) -> Any:
    done = run_mergemill("status", "--json", *words, cwd=folder, **variables)
    assert done.exit_code == 0, done.stderr
    return done.json


def test_the_status_names_what_runs_the_queue_and_failures_by_reason(folder: Path) -> None:
    pull = records.make_pull_request()
    candidate = records.make_candidate(pull)
    rejection = records.make_rejection(candidate, Stage.BUILD, "build-failed")
    shown = MessageProgress()
    with RunStatusFile(shown, folder / "mergemill-store" / "runs", "run", ["git:greet"]) as progress:
        progress.work.n_expected = 4
        progress.work.start_step("3", Stage.VERIFY, "ada__greet-3")
        progress.report_result(
            StageResult(stage=Stage.BUILD, result=rejection, source=pull.source, name=pull.name, seconds=1.0)
        )
        for error in (Transient("no network"), Transient("no network"), KeyError("x")):
            progress.report_failure(Stage.BUILD, pull.name, error)
        progress._write("running")
        status = find_status(folder, "--limit", "1")
        text = run_mergemill("status", cwd=folder).stdout
    running, mined = status["runs"]
    assert (running["state"], mined["state"], mined["command"]) == ("running", "finished", "mine")
    assert [(step["stage"], step["name"]) for step in running["running"]] == [("verify", "ada__greet-3")]
    assert running["rejections"] == {"build": {"build-failed": 1}}
    assert status["failures"] == [
        {"stage": "build", "kind": "Transient", "n": 2},
        {"stage": "build", "kind": "bug", "n": 1},
    ]
    assert status["queue"] == {"build": 2, "verify": 0, "judge": 0, "derive": 0, "certify": 0}
    assert status["disk"]["free_bytes"] > 0
    for line in ("verify  ada__greet-3", "build  Transient  2", "queue      build 2, verify 0"):
        assert " ".join(line.split()) in " ".join(text.split())


def write_run(runs: Path, name: str, **fields: Any) -> None:
    """Write the status of a run that began an hour before its last sign of life, now, and has done 90 changes."""
    now = datetime.now(UTC)
    status = {
        "id": name,
        "command": "run",
        "sources": ["git:greet"],
        "state": "running",
        "host": "a",
        "pid": 1,
        "started_at": (now - timedelta(hours=1)).isoformat(),
        "updated_at": now.isoformat(),
        "stages": {},
        "earlier": 0,
        "done": 90,
        "total": 120,
        "seconds_left": 1200,
        "running": [],
        "events": [],
    }
    (runs / f"{name}.json").write_text(json.dumps(status | fields))


def test_a_run_has_its_rate_and_the_time_that_is_left(tmp_path: Path) -> None:
    write_run(tmp_path, "2")
    write_run(tmp_path, "1", state="finished")
    active, ended = list_runs(tmp_path)
    assert (active["seconds"], active["rate"], active["seconds_left"]) == (3600, 90, 1200)
    assert (ended["rate"], ended["seconds_left"]) == (90, None)


def test_a_step_has_the_name_of_its_node_or_of_this_machine(tmp_path: Path) -> None:
    with RunStatusFile(MessageProgress(), tmp_path, "run", ["git:greet"]) as progress:
        progress.work.start_step("1", Stage.BUILD, "ada__greet-1", "node-a")
        progress.work.start_step("2", Stage.BUILD, "ada__greet-2")
        progress._write("running")
        (run,) = list_runs(tmp_path)
    places = {step["name"]: step["place"] for step in run["running"]}
    assert places == {"ada__greet-1": "node-a", "ada__greet-2": socket.gethostname()}


def test_runs_that_start_in_the_same_second_are_listed_newest_first(tmp_path: Path) -> None:
    for source in ("git:first", "git:second"):
        with RunStatusFile(MessageProgress(), tmp_path, "run", [source]):
            pass
    assert [run["sources"] for run in list_runs(tmp_path)] == [["git:second"], ["git:first"]]


def test_only_the_newest_files_are_kept(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 5):
        write_run(tmp_path, f"19990101T{number:06}")
    with RunStatusFile(MessageProgress(), tmp_path, "run", ["git:greet"]):
        pass
    left = sorted(path.stem for path in tmp_path.glob("*.json"))
    assert len(left) == MAX_FILES
    assert left[0] == "19990101T000006"


def test_a_run_whose_process_was_killed_is_lost(folder: Path) -> None:
    (path,) = (folder / "mergemill-store" / "runs").glob("*.json")
    status = json.loads(path.read_text())
    silent = (datetime.now(UTC) - timedelta(minutes=2)).isoformat(timespec="seconds")
    running = [{"stage": "build", "name": "ada__greet-2", "seconds": 3}]
    path.write_text(json.dumps(status | {"state": "running", "updated_at": silent, "running": running}))
    assert find_status(folder)["runs"][0]["state"] == "lost"
    assert "running now" not in run_mergemill("status", cwd=folder).stdout


def test_a_status_file_of_an_earlier_version_is_read(folder: Path) -> None:
    (path,) = (folder / "mergemill-store" / "runs").glob("*.json")
    status = json.loads(path.read_text())
    path.write_text(json.dumps({key: status[key] for key in status if key not in ("rejections", "failures")}))
    assert find_status(folder)["failures"] == []


def test_all_active_runs_and_the_newest_others_are_selected() -> None:
    states = ["finished", "running", "lost", "draining", "failed"]
    runs = [{"id": number, "state": state} for number, state in enumerate(states)]
    assert [run["id"] for run in select_runs(runs, 1)] == [0, 1, 3]
    assert [run["id"] for run in select_runs(runs, 0)] == [1, 3]


def test_failures_of_all_runs_are_counted_most_frequent_first() -> None:
    runs = [
        {"failures": {"build": {"bug": 1, "Transient": 2}}},
        {"failures": {"verify": {"bug": 4}, "build": {"bug": 2}}},
    ]
    assert list_failures(runs) == [
        {"stage": "verify", "kind": "bug", "n": 4},
        {"stage": "build", "kind": "bug", "n": 3},
        {"stage": "build", "kind": "Transient", "n": 2},
    ]


def test_without_an_engine_the_rest_is_shown(folder: Path) -> None:
    nowhere = "unix:///nonexistent/docker.sock"
    assert "no Docker engine answers" in find_status(folder, DOCKER_HOST=nowhere)["engine"]["problem"]
    assert find_status(folder, "--sandbox", "bubblewrap", DOCKER_HOST=nowhere)["engine"] is None


@pytest.mark.docker
def test_the_engine_is_measured(folder: Path) -> None:
    engine = find_status(folder)["engine"]
    assert engine["problem"] is None
    assert engine["image_bytes"] > 0


def test_without_a_database_the_command_ends_with_one_line(tmp_path: Path) -> None:
    done = run_mergemill("status", cwd=tmp_path)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (3, "", 1)


def test_the_status_is_shown_again_until_it_is_interrupted(folder: Path) -> None:
    with open_mergemill("status", "--json", "--watch", "0.1", "--sandbox", "bubblewrap", cwd=folder) as command:
        shown = [json.loads(command.stdout.readline()) for _ in range(3)]
        os.kill(command.process.pid, signal.SIGTERM)
        assert command.process.wait(30) == 130
    assert len(shown) == 3
