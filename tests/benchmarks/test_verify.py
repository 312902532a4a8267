"""The benchmark against SWE-bench's harness, without running it."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.verify import (
    Cost,
    compute_ratio,
    find_failures,
    find_unresolved,
    read_busy_seconds,
    read_written_bytes,
    render_table,
)

COST = Cost(wall_seconds=20.0, cpu_seconds=30.0, containers=4, written_bytes=5_000_000, resolved=2)


def test_a_way_that_misses_a_task_once_is_named() -> None:
    once = [COST, replace(COST, resolved=1), COST]
    assert find_unresolved({"swebench": [COST, COST], "mergemill": once}, 2) == ["mergemill"]


@pytest.mark.parametrize(
    ("plain", "controlled", "resolved", "failures"),
    [
        ((60, 66, 90), (10, 11, 15), 2, 0),
        ((59, 59, 90), (10, 10, 10), 2, 1),
        ((90, 90, 90), (12, 13, 12), 2, 1),
        ((90, 90, 90), (10, 10, 10), 1, 1),
        ((30, 30, 30), (15, 15, 15), 1, 3),
    ],
)
def test_a_goal_that_is_missed_and_an_unresolved_task_are_failures(
    plain: tuple[float, ...], controlled: tuple[float, ...], resolved: int, failures: int
) -> None:
    costs = {
        "swebench": [replace(COST, wall_seconds=seconds) for seconds in plain],
        "mergemill": [replace(COST, wall_seconds=seconds, resolved=resolved) for seconds in controlled],
        "mergemill, no controls": [replace(COST, wall_seconds=seconds) for seconds in (9, 9, 12)],
    }
    assert len(find_failures(costs, 2)) == failures


def test_a_ratio_compares_the_ways_of_one_round() -> None:
    """Other work slows the ways of a round down alike, and not those of another round."""
    slow = [replace(COST, wall_seconds=seconds) for seconds in (10, 100, 20)]
    fast = [replace(COST, wall_seconds=seconds) for seconds in (5, 50, 2)]
    assert compute_ratio({"slow": slow, "fast": fast}, "slow", "fast") == 2.0


def test_the_table_has_medians_and_ratios_to_the_harness() -> None:
    fast = [replace(COST, wall_seconds=seconds, resolved=resolved) for seconds, resolved in ((5, 2), (80, 1), (4, 2))]
    out = io.StringIO()
    Console(file=out, width=200).print(render_table({"swebench": [COST], "mergemill": fast}, 2))
    (row,) = [line for line in out.getvalue().splitlines() if "mergemill" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "mergemill",
        "5.0",
        "0.25",
        "30.0",
        "4",
        "5",
        "1 of 2",
    ]


def test_counters_of_the_machine_count_what_is_used() -> None:
    before, written = read_busy_seconds(), read_written_bytes()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    assert read_busy_seconds() - before >= 0.2
    assert read_written_bytes() >= written
