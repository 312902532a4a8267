"""Progress: what is running, how much is left, and what an interrupted run leaves."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from core.errors import CancelledRunError
from core.text import format_count
from mergemill.execution.progress import LiveTableProgress, MessageProgress, WorkState, format_seconds
from mergemill.pipeline.runs import _count_earlier_work, _stop_services
from taskdb.records import Stage
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.mergemill.stages import FakeStages, run
from tests.scopes import make_scope


class ManualClock:
    """Clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def make_work(clock: ManualClock, *, earlier: int = 0, expected: int = 0) -> WorkState:
    return WorkState(clock=clock, n_earlier=earlier, n_expected=expected)


def test_the_state_counts_earlier_work_and_estimates_the_rest() -> None:
    clock = ManualClock()
    work = make_work(clock, earlier=10, expected=8)
    assert work.format_state() == "0 s   10 of 18+ changes (10 by earlier runs)"
    work.n_read = 4
    work.end_change("1")
    work.end_change("1")
    clock.now = 60
    assert work.estimate_seconds_left() == pytest.approx(180)
    assert work.format_state() == "1 min 0 s   12 of 18+ changes (10 by earlier runs)   about 3 min 0 s left"


def test_the_total_is_exact_once_all_changes_are_read() -> None:
    work = make_work(ManualClock(), expected=2)
    work.n_read = 5  # the miner found more than were known
    assert work.n_total == 5
    work.n_read, work.n_expected, work.all_read = 1, 2, True
    assert (work.n_total, "+" in work.format_state()) == (1, False)


def test_running_steps_are_listed_longest_first_and_disappear_when_they_end() -> None:
    clock = ManualClock()
    work = make_work(clock)
    work.start_step("1", Stage.BUILD, "ada__greet-1", "node-a")
    clock.now = 5
    work.start_step("2", Stage.BUILD, "ada__greet-2")
    work.start_step("git:greet", Stage.MINE, "git:greet")
    clock.now = 6
    work.start_step("2", Stage.VERIFY, "ada__greet-2")
    assert [(step.stage, step.name, step.place) for step in work.list_running()] == [
        (Stage.BUILD, "ada__greet-1", "node-a"),
        (Stage.MINE, "git:greet", ""),
        (Stage.VERIFY, "ada__greet-2", ""),
    ]
    work.end_change("1")
    work.end_step("2")
    work.end_step("git:greet")
    assert (work.n_finished, work.list_running()) == (1, [])


def test_the_table_shows_running_steps_results_and_the_time_left() -> None:
    output = io.StringIO()
    progress = LiveTableProgress(Console(file=output, width=100))
    clock = ManualClock()
    progress.work = make_work(clock, expected=2)
    progress.work.earlier = {Stage.BUILD: 7}
    progress.work.start_step("1", Stage.VERIFY, "ada__greet-" + "1" * 90, "node-a")
    clock.now = 65
    environment = records.make_environment(records.make_candidate(records.make_pull_request(1)))
    progress.report_result(
        StageResult(stage=Stage.BUILD, result=environment, source="git:greet", name="ada__greet-2", seconds=3)
    )
    progress.console.print(progress._render())
    shown = output.getvalue()
    assert "1 min 5 s   0 of 2+ changes" in shown
    assert "ended    build    ada__greet-2  ok  3.0 s" in shown
    assert "".join(shown.split()).count("1" * 90) == 1  # a long name is folded, not cut
    assert "on node-a" in shown
    assert ["build", "7", "1"] in [line.split() for line in shown.splitlines()]


@pytest.mark.parametrize("width", [25, 40, 60])
def test_a_narrow_terminal_cuts_nothing(width: int) -> None:
    output = io.StringIO()
    progress = LiveTableProgress(Console(file=output, width=width))
    progress.work = make_work(ManualClock(), expected=2)
    progress.work.earlier = {Stage.BUILD: 123_456}
    progress.work.start_step("1", Stage.VERIFY, "ada__greet-" + "1" * 90, "node-a")
    progress.console.print(progress._render())
    assert "\N{HORIZONTAL ELLIPSIS}" not in output.getvalue()
    assert max(map(len, output.getvalue().splitlines())) <= width
    assert "".join(output.getvalue().split()).count("1" * 90) == 1


def test_an_interrupted_run_prints_what_it_did_and_what_is_left() -> None:
    output = io.StringIO()
    progress = MessageProgress(output)
    progress.work.n_read = 3
    progress.work.end_change("1")
    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt
    assert output.getvalue() == "mergemill: 1 change finished in 0 s, 0 results stored, 2 changes or more left\n"


def test_a_run_counts_changes_and_ends_without_running_steps(tmp_path: Path) -> None:
    work = run(tmp_path, FakeStages()).progress.work
    assert (work.n_read, work.n_finished, work.all_read, work.list_running()) == (3, 3, True, [])


def test_earlier_work_is_counted_for_every_stage(tmp_path: Path) -> None:
    done = run(tmp_path, FakeStages({(Stage.VERIFY, "ada__greet-2"): "flaky"}))
    with Store.open(f"sqlite:///{tmp_path}/m.db") as store:
        done.store = store
        _count_earlier_work(done, make_scope(sources=("git:greet",)))
    assert done.progress.work.earlier == {stage: 3 if stage in (Stage.MINE, Stage.BUILD) else 2 for stage in Stage}
    assert done.progress.work.n_earlier == 3


def test_only_a_run_with_an_engine_announces_that_containers_are_stopped() -> None:
    announced: list[bool] = []
    stopped: Any = SimpleNamespace(sandbox=SimpleNamespace(stop=lambda: announced.append(True)), model=None)
    _stop_services(None, None, KeyboardInterrupt())
    assert announced == []
    _stop_services(None, lambda: announced.append(False), KeyboardInterrupt())  # the containers of other machines
    assert announced.pop() is False
    _stop_services(stopped, lambda: announced.append(False), KeyboardInterrupt())
    assert announced == [False, True]


def test_a_change_that_ctrl_c_stops_is_not_finished(tmp_path: Path) -> None:
    stopped: dict[tuple[Stage, str], Exception | str] = {(Stage.VERIFY, "ada__greet-2"): CancelledRunError("stopped")}
    work = run(tmp_path, FakeStages(stopped)).progress.work
    assert (work.n_read, work.n_finished) == (3, 2)


def test_no_further_change_is_begun_once_there_are_tasks_enough(tmp_path: Path) -> None:
    stages = FakeStages()
    done = run(tmp_path, stages, workers=1, max_tasks=1)
    certified = [name for stage, name in stages.calls if stage is Stage.CERTIFY]
    assert 1 <= len(certified) < 3  # a change or two were already queued
    assert done.n_certified == len(certified)
    assert run(tmp_path, FakeStages()).n_certified == 3 - len(certified)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert format_seconds(seconds) == shown


def test_counts_with_their_nouns() -> None:
    assert format_count(1, "repository") == "1 repository"
    assert [format_count(n, noun) for n, noun in ((0, "task"), (2, "repository"), (3, "day"))] == [
        "0 tasks",
        "2 repositories",
        "3 days",
    ]
