"""The benchmark of the intervals of benches."""

from __future__ import annotations

import math

import pytest

from benchmarks import intervals
from evaluation.statistics.clusters import ClusteredMean


def test_every_design_keeps_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert intervals.main(["--draws", "300"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(intervals.DESIGNS) == 8
    assert all(15 <= design.families <= 60 and design.runs in (1, 4) for design in intervals.DESIGNS)


def test_independent_normal_intervals_pass_a_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compute_normal(share: ClusteredMean) -> tuple[float, float]:
        spread = 1.96 * math.sqrt(share.mean * (1 - share.mean) / share.n)
        return share.mean - spread, share.mean + spread

    monkeypatch.setattr(intervals, "compute_share_interval", compute_normal)
    assert intervals.main(["--draws", "100"]) == 1
    assert "15 families: coverage" in capsys.readouterr().err


def test_limits_have_two_ends() -> None:
    right = intervals.DesignResult(name="d", coverage=0.95, width=1.0, false_alarms=0.05)
    assert right.list_problems() == []
    wide = intervals.DesignResult(name="d", coverage=0.98, width=1.2, false_alarms=0.02)
    assert [problem.split()[1] for problem in wide.list_problems()] == ["coverage", "width", "false"]
