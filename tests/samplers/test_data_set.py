"""One command from certified tasks to a data set, with three real programs; lucky passes are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import data_set
from tests.samplers.conftest import BUGFIX


@pytest.mark.docker
def test_rollouts_of_three_programs_become_a_data_set_without_lucky_passes(
    certified: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "mergemill.db"
    database.write_bytes((certified / "mergemill.db").read_bytes())
    (tmp_path / "mergemill-store").symlink_to(certified / "mergemill-store")
    options = ["--db", str(database), "--out", str(tmp_path / "rows"), "--only", BUGFIX]
    code = data_set.main([*options, "--character", "quick,lucky"])
    report = capsys.readouterr().out
    assert code == 0, report
    assert report.count("done           value 1.0  3") == 2, report
    assert "selected by character: {'quick': 3}; let through wrongly: none" in report
    (path,) = (tmp_path / "rows").rglob("*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["messages"][-1]["role"] for row in rows] == ["assistant"] * 3
