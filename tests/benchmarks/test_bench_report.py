"""The benchmark of reports of benches."""

from __future__ import annotations

import pytest

from benchmarks import bench_report

SMALL = ["--subjects", "12", "--runs", "2", "--models", "2", "--rounds", "1"]


def test_the_ratio_decides(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench_report, "MAX_RATIO", 1e6)
    assert bench_report.main(SMALL) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("60 rows read in ")
    assert printed.err == ""
    monkeypatch.setattr(bench_report, "MAX_RATIO", 0.0)
    assert bench_report.main(SMALL) == 1
    assert "more than 0 times as long as reading its rows" in capsys.readouterr().err
