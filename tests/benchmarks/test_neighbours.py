"""The benchmark of gradings next to containers that misuse what they are given: its verdict and its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from benchmarks.neighbours import NEIGHBOURS, Case, misses_goal, render_table
from builders.bases import ensure_base
from tests.containers import make_services

ALONE = Case("alone", (2.0, 2.0, 9.0))


def test_one_slow_grading_does_not_decide_and_the_median_does() -> None:
    assert not misses_goal(ALONE, [Case("prints", (3.0, 2.9, 30.0))])
    assert misses_goal(ALONE, [Case("computes", (2.0, 2.0, 2.0)), Case("forks", (3.2, 3.1, 2.0))])
    assert render_table(ALONE, [Case("forks", (3.2, 3.1, 2.0))]).splitlines()[2:] == [
        "| none | 2.00 | 9.00 | 1.00 |",
        "| forks | 3.10 | 3.20 | 1.55 |",
    ]


@pytest.mark.docker
@pytest.mark.parametrize(
    ("name", "killed_by"),
    [
        ("forks", "time"),
        ("takes memory", "memory"),
        ("fills the disk", "disk"),
        ("makes files", "time"),
        ("prints", "time"),
    ],
)
def test_a_neighbour_does_what_its_name_says(name: str, killed_by: str, tmp_path: Path) -> None:
    """One that ended at once would disturb nobody."""
    base = ensure_base("python", "3.11", make_services(tmp_path)).name
    # What ends for its memory or disk does so within seconds, unless the machine is busy.
    seconds = 3 if killed_by == "time" else 60
    limits = ResourceLimits(seconds=seconds, memory_mb=128, disk_mb=64, pids=64, cpus=1.0, output_bytes=1000)
    result = DockerSandbox().run(base, ["bash", "-c", NEIGHBOURS[name]], limits=limits, user="mergemill")
    assert result.killed_by == killed_by, result.output
