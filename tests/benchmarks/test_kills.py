"""The kill benchmark: its tables, and a small run of it."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import kills

ROOT = Path(__file__).parents[2]


def make_run(is_equal: bool, **counts: int) -> kills.Run:
    nothing: Any = None
    run = kills.Run(nothing, random.Random(0), "")
    run.kills, run.starts, run.seconds, run.is_equal = Counter(counts), 2, 90.0, is_equal
    return run


def test_the_table_shows_each_run_and_what_a_kill_costs() -> None:
    runs = [make_run(True, driver=1, engine=2), make_run(False, node=1)]
    runs[1].faults["full disk"] = 1
    table = kills.format_table(runs, {"tasks": ["a", "b"], "candidate": ["c"]}, 50.0, 7)
    assert "| 7 | 1 | 0 | 0 | 2 | 0 | 0 | 0 | 0 | 0 | 2 | 90 | yes |" in table
    assert "| 8 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 2 | 90 | **no** |" in table
    assert "| all | 1 | 0 | 1 | 2 | 0 | 0 | 0 | 1 | 0 | 4 | 180 | 1 of 2 |" in table
    assert "4 kills, 1 faults. A run makes 2 tasks, 3 rows in all; undisturbed it takes 50 s" in table
    assert "A kill or fault costs 16 s on average" in table


@pytest.mark.ray
@pytest.mark.docker
@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_kills_change_no_record() -> None:
    seed = str(random.randrange(10**6))
    command = [sys.executable, "-m", "benchmarks.kills", "--kills", "5", "--check", "--seed", seed]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 kills" in done.stderr
