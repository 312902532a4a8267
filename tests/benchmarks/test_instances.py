from __future__ import annotations

from benchmarks.instances import Told, share, table


def told(verdict: str, language: str = "go") -> Told:
    return Told(name="a__b-1", language=language, verdict=verdict, detail="")


def test_shares_are_of_what_came_to_an_end() -> None:
    rows = [told("exact"), told("superset"), told("build: no-plan"), told("waiting"), told("exact", "rust")]
    lines = list(table(rows))
    assert lines[2].startswith("| go | 3 | 2 | 1 of 3, 33% (6%-79%) | 1 | 0 | 0 |")
    assert lines[4].startswith("| all | 4 | 3 | 2 of 4, 50%")
    assert lines[-2:] == ["- go: build: no-plan: 1", "- go: waiting: 1"]


def test_of_nothing_there_is_no_share() -> None:
    assert share(0, 0) == "-"
