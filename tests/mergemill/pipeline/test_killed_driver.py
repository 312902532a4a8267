"""A driver that is killed at any moment costs only what it was doing."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.certified import SECONDS, certified
from tests.cli import run_mergemill, start_mergemill

__all__ = ["certified"]


def list_certified(folder: Path) -> list[tuple[str, str, str]]:
    rows = run_mergemill("tasks", "list", "--json", cwd=folder).lines
    return sorted((row["id"], row["name"], row["status"]) for row in rows)


@pytest.mark.docker
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_at_random_moments_change_no_task(kills: int, certified: Path, tmp_path: Path) -> None:
    command = ("run", f"git:{certified}/ada__greet")
    whole = float((certified / SECONDS).read_text())
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    for _ in range(kills):
        with start_mergemill(*command, cwd=tmp_path) as driver:
            try:
                driver.wait(moments.uniform(0, whole))
            except subprocess.TimeoutExpired:
                driver.kill()
    last = run_mergemill(*command, cwd=tmp_path)

    assert last.exit_code == 0, last.stderr
    assert list_certified(certified), "the sample gives no task: nothing was tested"
    assert list_certified(tmp_path) == list_certified(certified), f"seed {seed}"
