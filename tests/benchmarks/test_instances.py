from __future__ import annotations

from benchmarks.instances import InstanceResult, format_share, render_table


def make_result(verdict: str, language: str = "go") -> InstanceResult:
    return InstanceResult(name="a__b-1", language=language, verdict=verdict, detail="")


def test_shares_refer_to_finished_tasks() -> None:
    rows = [
        make_result("exact"),
        make_result("superset"),
        make_result("build: no-plan"),
        make_result("waiting"),
        make_result("exact", "rust"),
    ]
    lines = list(render_table(rows))
    assert lines[2].startswith("| go | 3 | 2 | 1 of 3, 33% (6%-79%) | 1 | 0 | 0 |")
    assert lines[4].startswith("| all | 4 | 3 | 2 of 4, 50%")
    assert lines[-2:] == ["- go: build: no-plan: 1", "- go: waiting: 1"]


def test_there_is_no_share_of_zero_tasks() -> None:
    assert format_share(0, 0) == "-"
