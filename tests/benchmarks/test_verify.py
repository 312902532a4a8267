"""The benchmark against SWE-bench's harness, without running it."""

from __future__ import annotations

import io
import time
from dataclasses import replace

from rich.console import Console

from benchmarks.verify import Cost, find_unresolved, read_busy_seconds, read_written_bytes, render_table

COST = Cost(wall_seconds=20.0, cpu_seconds=30.0, containers=4, written_bytes=5_000_000, resolved=2)


def test_a_way_that_misses_a_task_once_is_named() -> None:
    once = [COST, replace(COST, resolved=1), COST]
    assert find_unresolved({"swebench": [COST, COST], "mergemill": once}, 2) == ["mergemill"]


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
