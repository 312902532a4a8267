"""One command from certified tasks to a data set, with three real programs; lucky passes are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import data_set
from tests.samplers.conftest import BUGFIX


def test_a_table_has_a_row_for_each_scaffold_and_the_last_result_of_each_task() -> None:
    done = {"reason": None, "value": 1.0, "requests": 4, "seconds": 12.4}
    lost = {"reason": "upstream-timeout", "value": None, "requests": 1, "seconds": 9.0}
    rollouts = [
        {"scaffold": "react", "task": "a__one-1.bugfix"} | lost,
        {"scaffold": "react", "task": "a__one-1.bugfix"} | done,
        {"scaffold": "codex", "task": "b__two-2.feature"} | lost,
        {"scaffold": "codex", "task": "a__one-1.bugfix"} | done | {"reason": "time-limit", "value": 0.5},
    ]
    assert data_set.render_table("quick", rollouts) == (
        "| quick | one-1 | two-2 |\n"
        "|---|---|---|\n"
        "| `codex` | 0.5, 4 requests, 12 s, time-limit | upstream-timeout |\n"
        "| `react` | 1, 4 requests, 12 s | - |\n"
    )


def test_effects_are_told_by_character_and_by_rule() -> None:
    rollouts = [{"model": "quick", "value": 1.0}, {"model": "quick", "value": 0.0}, {"model": "lucky", "value": 1.0}]
    selected = [
        {"event": "rule", "rule": "reward", "before": 3, "after": 2, "alone": 1},
        {"event": "summary", "trajectories": 3, "selected": 1},
    ]
    assert data_set.render_effects(rollouts, {"quick": 1}, selected) == (
        "| character | teaches | rollouts | of value 1 | selected |\n"
        "|---|---|---:|---:|---:|\n"
        "| lucky | no | 1 | 1 | 0 |\n"
        "| quick | yes | 2 | 1 | 1 |\n"
        "\n"
        "| rule | before | after | refused by it alone |\n"
        "|---|---:|---:|---:|\n"
        "| `reward` | 3 | 2 | 1 |\n"
    )


@pytest.mark.docker
@pytest.mark.slow
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
