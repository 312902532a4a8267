"""SIGTERM: a run lets the steps that run finish, stores their results and begins nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mergemill.cli.exit_codes import DRAINED
from mergemill.execution.run_status import list_runs
from taskdb.records import Record, Rejection, Stage
from tests.cli import OpenCommand, open_mergemill, run_mergemill
from tests.mergemill.stages import FakeStages, mine_changes, run
from tests.sample import make_sample


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
def start_build(folder: Path, *words: str) -> Iterator[OpenCommand]:
    """Start a run whose first build waits for the file `finish`, and enter the block when it builds."""
    with open_mergemill(*words, cwd=folder, module="tests.mergemill.slow_build") as command:
        assert command.stdout.readline() == "building\n"
        yield command


def drain(command: OpenCommand) -> None:
    """Send the command SIGTERM."""
    os.kill(command.process.pid, signal.SIGTERM)


def read_to_end(command: OpenCommand) -> tuple[str, str]:
    """Return what the command writes until its end."""
    output, errors = command.stdout.read(), command.stderr.read()
    command.process.wait(timeout=60)
    return output, errors


def read_line_with(command: OpenCommand, word: str) -> str:
    for line in command.stderr:
        if word in line:
            return line
    raise AssertionError(f"no line with {word}")


def test_sigterm_waits_for_the_step_that_runs_and_stores_its_result(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "60") as command:
        drain(command)
        assert "1 step may take 1 min 0 s to finish" in read_line_with(command, "draining")
        (folder / "finish").touch()
        output, errors = read_to_end(command)
    assert command.process.returncode == DRAINED == 143
    assert output.count("building") == 0, "a second change was begun"
    assert errors.splitlines()[-1].endswith("1 result stored, 2 changes left; the same command continues from here")
    assert list_runs(folder / "mergemill-store" / "runs")[0]["state"] == "stopped"
    assert run_mergemill("funnel", "--json", cwd=folder).lines[1]["out"] == 1


def test_a_second_sigterm_stops_at_once(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "3000") as command:
        drain(command)
        read_line_with(command, "draining")
        drain(command)
        (folder / "finish").touch()
        _, errors = read_to_end(command)
    assert command.process.returncode == 130
    assert errors.splitlines()[-1] == "mergemill: stopped; the same command continues from here"


def test_the_end_of_the_time_stops_as_well(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "0") as command:
        drain(command)
        read_line_with(command, "draining")
        read_line_with(command, "left")
        (folder / "finish").touch()
        read_to_end(command)
    assert command.process.returncode == 130


def test_the_run_shows_that_it_drains(folder: Path) -> None:
    with start_build(folder, "--drain-seconds", "60") as command:
        drain(command)
        read_line_with(command, "draining")
        states: set[str] = set()
        while "draining" not in states:
            (status, *_) = list_runs(folder / "mergemill-store" / "runs")
            states.add(status["state"])
            assert command.process.poll() is None
            time.sleep(0.02)
        (folder / "finish").touch()
        read_to_end(command)
