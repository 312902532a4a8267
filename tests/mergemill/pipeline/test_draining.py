"""SIGTERM: a run lets the steps that run finish, stores their results and begins nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mergemill.cli.exit_codes import DRAINED
from mergemill.execution.run_status import list_runs
from taskdb.records import Record, Rejection, Stage
from tests.cli import make_command_environment, run_mergemill
from tests.mergemill.stages import FakeStages, mine_changes, run
from tests.sample import make_sample

ROOT = Path(__file__).parents[3]

COMMAND = """
import sys, time
from pathlib import Path
from mergemill import cli
from mergemill.pipeline import runs
from tests.mergemill.stages import FakeStages

class SlowStages(FakeStages):
    def build(self, it, services):
        print("building", flush=True)
        while not Path("finish").exists():
            time.sleep(0.01)
        return super().build(it, services)

stages = SlowStages()
runs.list_steps = stages.steps
runs._needs_engine = lambda scope: False
sys.argv[1:] = ["build", "--workers", "1", *sys.argv[1:]]
cli.main()
"""


class DrainedStages(FakeStages):
    """Stages whose build of one change sets the run to drain."""

    work: Any = None

    def verify(self, it: Any, services: Any) -> Record | Rejection:
        if it.candidate.name == "ada__greet-4":
            self.work.is_draining = True
        return super().verify(it, services)


def test_a_draining_run_ends_each_change_after_its_step_and_the_next_run_continues(tmp_path: Path) -> None:
    stages = DrainedStages()

    def observe(progress: Any) -> Any:
        stages.work = progress.work
        return progress

    done = run(tmp_path, stages, workers=1, observe=observe)
    assert stages.calls == [(Stage.BUILD, "ada__greet-4"), (Stage.VERIFY, "ada__greet-4")]
    assert done.n_new == 4 + 2
    assert done.progress.work.n_finished == 0
    rest = FakeStages()
    run(tmp_path, rest, workers=1)
    assert rest.calls[0] == (Stage.JUDGE, "ada__greet-4")
    assert rest.calls[-1] == (Stage.CERTIFY, "ada__greet-1")


def test_a_draining_run_ends_its_mining(tmp_path: Path) -> None:
    mined = []

    def mine(source: str, services: Any) -> Any:
        for outcome in mine_changes(source, services, changes=500):
            mined.append(outcome)
            if len(mined) == 3:
                work.is_draining = True
            yield outcome

    work: Any = None

    def observe(progress: Any) -> Any:
        nonlocal work
        work = progress.work
        return progress

    stages = FakeStages()
    run(tmp_path, stages, mine=mine, observe=observe, sources=("git:greet", "git:other"))
    assert (len(mined), stages.calls) == (3, [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_sample(tmp_path / "greet")
    assert run_mergemill("mine", "git:greet", cwd=tmp_path).exit_code == 0
    return tmp_path


@contextmanager
def start_build(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a run whose first build waits for the file `finish`, and enter the block when it builds."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        env=make_command_environment() | {"PYTHONPATH": f"{ROOT}:{ROOT}/client"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "building\n"
            yield process
        finally:
            process.kill()


def read_line_with(process: subprocess.Popen[str], word: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return line
    raise AssertionError(f"no line with {word}")


def test_sigterm_waits_for_the_step_that_runs_and_stores_its_result(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "60") as process:
        process.send_signal(signal.SIGTERM)
        assert "1 step may take 1 min 0 s to finish" in read_line_with(process, "draining")
        (folder / "finish").touch()
        output, errors = process.communicate(timeout=60)
    assert process.returncode == DRAINED == 143
    assert output.count("building") == 0, "a second change was begun"
    assert errors.splitlines()[-1].endswith("1 result stored, 2 changes left; the same command continues from here")
    assert list_runs(folder / "mergemill-store" / "runs")[0]["state"] == "stopped"
    assert run_mergemill("funnel", "--json", cwd=folder).lines[1]["out"] == 1


def test_a_second_sigterm_stops_at_once(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "3000") as process:
        process.send_signal(signal.SIGTERM)
        read_line_with(process, "draining")
        process.send_signal(signal.SIGTERM)
        (folder / "finish").touch()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "mergemill: stopped; the same command continues from here"


def test_the_end_of_the_time_stops_as_well(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "0") as process:
        process.send_signal(signal.SIGTERM)
        read_line_with(process, "draining")
        read_line_with(process, "left")
        (folder / "finish").touch()
        process.communicate(timeout=60)
    assert process.returncode == 130


def test_the_run_shows_that_it_drains(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "60") as process:
        process.send_signal(signal.SIGTERM)
        read_line_with(process, "draining")
        states: set[str] = set()
        while "draining" not in states:
            (status, *_) = list_runs(folder / "mergemill-store" / "runs")
            states.add(status["state"])
            assert process.poll() is None
        (folder / "finish").touch()
        process.communicate(timeout=60)
