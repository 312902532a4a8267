"""The scaling benchmark: its tables, and that a goal can be missed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scaling
from benchmarks.page_table import END, format_mark
from taskdb.records.work import StageResult
from taskdb.store import Store

SMALL = ("--changes", "20", "--queued", "100", "--fed", "4", "--feed-seconds", "0.5")
LOOSE = {"MOST_MILLISECONDS": 1e9, "LEAST_BUSY": 0.0, "MOST_MEMORY_RATIO": 1e9}


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["scaling", *SMALL, *options])
    with pytest.raises(SystemExit) as ended:
        scaling.main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def measurements() -> dict[tuple[str, object], Any]:
    """Function of the benchmark and its last argument -> what it measured."""
    return {}


@pytest.fixture
def measure_once(measurements: dict[tuple[str, object], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each function measure in one of the tests and return the same in the others."""

    def keep(name: str) -> None:
        measure = getattr(scaling, name)

        def measure_or_repeat(*arguments: Any) -> Any:
            key = (name, arguments[-1])
            if key not in measurements:
                measurements[key] = measure(*arguments)
            return measurements[key]

        monkeypatch.setattr(scaling, name, measure_or_repeat)

    for name in ("time_driver", "measure_busy", "measure_memory"):
        keep(name)


@pytest.mark.usefixtures("measure_once")
def test_the_tables_are_written_into_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n" + format_mark("benchmarks.scaling") + END + "after\n")
    for name, loose in LOOSE.items():
        monkeypatch.setattr(scaling, name, loose)
    assert run(monkeypatch, "--page", str(page), "--check") == 0
    text = page.read_text()
    assert "| SQLite | threads | 20 |" in text
    assert "One driver keeps 4 workers that wait 0.5 s for each task (SQLite) busy for " in text
    assert "| 100 |" in text
    assert text.endswith("after\n")


@pytest.mark.usefixtures("measure_once")
@pytest.mark.parametrize(
    ("goal", "value"), [("MOST_MILLISECONDS", 0.001), ("LEAST_BUSY", 1.0), ("MOST_MEMORY_RATIO", 0.1)]
)
def test_a_missed_goal_is_seen(goal: str, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, loose in (LOOSE | {goal: value}).items():
        monkeypatch.setattr(scaling, name, loose)
    assert run(monkeypatch, "--check") == 1


def test_workers_that_wait_for_the_driver_are_not_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = scaling.measure_busy(f"sqlite:///{tmp_path}/a.db", 4, 1.0)
    add = Store.add_stage_results

    def add_slowly(self: Store, *finished: StageResult) -> list[StageResult]:
        time.sleep(1.5)  # so long that it shows on a busy machine, too
        return add(self, *finished)

    monkeypatch.setattr(Store, "add_stage_results", add_slowly)
    assert scaling.measure_busy(f"sqlite:///{tmp_path}/b.db", 4, 1.0) < 0.8 * quick
