"""Differences between runs: bounds of missing and open values, few families, and ends of intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluation.statistics.comparisons import PairedDifference
from mergemill.bench.figures import ColumnDifference, describe_difference
from mergemill.bench.metrics import Metric, OpenValue, Values
from mergemill.bench.reports import render_markdown
from taskdb.records.bench import BenchSubject
from taskdb.records.rollouts import Rollout
from tests.mergemill.bench.making import GetValue, add_run, find_row, make_set, report


class Judged(Metric):
    """A share that is decided where a rollout has values of 0 or 1, and is open from 0.25 to 0.75 otherwise."""

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        assert rollout.value is not None
        decided = rollout.value in (0.0, 1.0)
        return {"judged": rollout.value if decided else OpenValue(0.25, 0.75), "all_open": OpenValue(0.0, 1.0)}


def compare(
    folder: Path, subjects: int, base: GetValue, other: GetValue, *metrics: Metric, runs: int = 2
) -> dict[str, Any]:
    """Return the report of a run against another, on a set whose subjects are families of their own."""
    bench_set, tasks = make_set(folder, subjects)
    first = add_run(folder, bench_set, tasks, base, checkpoint="a", runs=runs)
    second = add_run(folder, bench_set, tasks, other, checkpoint="b", runs=runs)
    return report(folder, second, against=first, metrics=metrics)


def test_a_difference_is_bounded_by_what_is_missing_in_either_run(tmp_path: Path) -> None:
    lost = {(0, 1), (1, 1), (1, 2)}
    made = compare(tmp_path, 10, lambda *key: None if key in lost else 0.0, lambda n, _: None if n == 2 else 1.0)
    row = find_row(made["differences"], column="resolved")
    assert (row["difference"], row["n"], row["families"], row["open"]) == (1.0, 8, 8, 3)
    # Subject 0 differs by 0.5 to 1, the subjects 1 and 2 by 0 to 1, the other seven by 1.
    assert row["bounds"] == [0.75, 1.0]
    complete = compare(tmp_path / "complete", 10, lambda *_: 0.0, lambda *_: 1.0)
    row = find_row(complete["differences"], column="resolved")
    assert (row["n"], row["open"], row["bounds"]) == (10, 0, None)


def test_a_column_that_is_open_everywhere_has_a_difference_with_bounds_alone(tmp_path: Path) -> None:
    made = compare(tmp_path, 12, lambda n, _: 0.5 if n else 0.0, lambda *_: 1.0, Judged(), runs=1)
    row = find_row(made["differences"], column="judged")
    assert (row["difference"], row["n"], row["open"], row["p"]) == (1.0, 1, 11, None)
    assert row["bounds"] == [round((1 + 11 * 0.25) / 12, 6), round((1 + 11 * 0.75) / 12, 6)]
    row = find_row(made["differences"], column="all_open")
    assert (row["difference"], row["n"], row["families"], row["open"]) == (None, 0, 0, 12)
    assert (row["bounds"], row["low"], row["p"], row["p_holm"], row["detectable"]) == ([-1.0, 1.0], *[None] * 4)
    assert "| all_open | - | - | - | -1 to 1 | 12 |" in render_markdown(made)


def test_a_run_without_any_score_is_compared_by_its_bounds(tmp_path: Path) -> None:
    made = compare(tmp_path, 4, lambda *_: None, lambda n, _: float(n < 3))
    row = find_row(made["differences"], column="value")
    assert (row["difference"], row["n"], row["open"], row["bounds"]) == (None, 0, 4, [-0.25, 0.75])


def test_passes_of_an_incomplete_run_have_bounds(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 4)
    run = add_run(
        tmp_path, bench_set, tasks, lambda n, a: None if (n, a) in {(0, 1), (1, 1), (1, 2)} else float(n < 2), runs=2
    )
    figures = report(tmp_path, run)["figures"]
    row = find_row(figures, column="pass@2")
    assert (row["mean"], row["n"], row["bounds"]) == (0.0, 2, [0.25, 0.5])
    row = find_row(figures, column="pass^2")
    assert (row["mean"], row["n"], row["bounds"]) == (0.0, 2, [0.0, 0.5])
    complete = add_run(tmp_path, bench_set, tasks, lambda *_: 1.0, runs=2, checkpoint="all")
    assert find_row(report(tmp_path, complete)["figures"], column="pass@2")["bounds"] is None


@pytest.mark.parametrize(("families", "has_interval"), [(1, False), (3, False), (9, False), (10, True)])
def test_few_families_have_a_difference_without_an_interval(tmp_path: Path, families: int, has_interval: bool) -> None:
    made = compare(tmp_path, families, lambda *_: 1.0, lambda n, _: float(n == 1), runs=1)
    row = find_row(made["differences"], column="resolved")
    assert row["difference"] == round(-1.0 + (families > 1) / families, 6)
    assert [row[name] is not None for name in ("low", "high", "detectable")] == [has_interval] * 3
    assert (row["families"], row["p"] is None) == (families, families == 1)


def test_an_interval_ends_where_shares_cannot_differ_more() -> None:
    paired = PairedDifference(difference=0.9, low=-1.2, high=1.07, probability=0.5, detectable=0.4, n=10, families=10)
    difference = ColumnDifference(mean=0.9, paired=paired, n=10, families=10, n_open=0, bounds=None)
    row = describe_difference(difference, 0.5)
    assert (row["low"], row["high"], row["detectable"], row["p_holm"]) == (-1.0, 1.0, 0.4, 0.5)
