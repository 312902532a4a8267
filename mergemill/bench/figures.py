"""Figures of columns over subjects: averages with intervals and bounds, medians, and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from core.errors import InputError
from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.comparisons import PairedDifference, compare_pairs
from evaluation.statistics.intervals import MIN_FAMILIES, compute_median_interval, compute_share_interval
from mergemill.bench.metrics import Metric, OpenValue
from mergemill.bench.results import ReportedSubject, RunResults
from taskdb.records.difficulty import compute_difficulty

KS = (1, 2, 4, 8, 16)
DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class ColumnValues:
    """Values of a column: subject -> those of its scored runs; and those that are open, as their ranges."""

    name: str
    metric: Metric
    values: Mapping[str, Sequence[float]]
    ranges: Mapping[str, Sequence[OpenValue]] = field(default_factory=dict)

    @property
    def is_amount(self) -> bool:
        """Whether its numbers are amounts."""
        return self.name in self.metric.amounts

    @cached_property
    def units(self) -> Mapping[str, float]:
        """Subject -> its value, by name, for those that have any: computed once for all groups and comparisons."""
        return {name: self.metric.aggregate(self.values[name]) for name in sorted(self.values)}

    def aggregate(self, names: Collection[str]) -> dict[str, float]:
        """Return subject -> its value, for those of some subjects that have any."""
        wanted = set(names)
        return {name: value for name, value in self.units.items() if name in wanted}


def collect_columns(
    results: RunResults, subjects: Mapping[str, ReportedSubject], metrics: Sequence[Metric]
) -> dict[str, ColumnValues]:
    """Return the columns of a run by name, in the order of the metrics."""
    columns: dict[str, ColumnValues] = {}
    for metric in metrics:
        values: dict[str, dict[str, list[float]]] = {}
        ranges: dict[str, dict[str, list[OpenValue]]] = {}
        for name in sorted(subjects):
            subject = subjects[name].subject
            for rollout in results.list_scored(name):
                for column, value in metric.score(subject, rollout).items():
                    if isinstance(value, OpenValue):
                        ranges.setdefault(column, {}).setdefault(name, []).append(value)
                    elif value is not None:
                        by_subject = values.get(column) or values.setdefault(column, {})
                        if name in by_subject:
                            by_subject[name].append(float(value))
                        else:
                            by_subject[name] = [float(value)]
        for column in dict.fromkeys((*values, *ranges)):
            # Two metrics may have a column of the same name, such as the reward: it is that of the first.
            columns.setdefault(
                column,
                ColumnValues(name=column, metric=metric, values=values.get(column, {}), ranges=ranges.get(column, {})),
            )
    return columns


def describe_column(
    column: ColumnValues, results: RunResults, subjects: Mapping[str, ReportedSubject], names: Collection[str]
) -> dict[str, Any]:
    """Return the figures of a column over some subjects.

    Keys of shares are the average and its interval, over the subjects that were scored, and `bounds`: the averages with
    everything missing as 0 and as 1, and open ones at the ends of their ranges; null where nothing is missing or open.
    Those of amounts are the median over the subjects and its interval.
    """
    units = column.aggregate(names)
    families = [subjects[name].family for name in units]
    row: dict[str, Any] = {"column": column.name, "n": len(units), "families": len(set(families))}
    if column.is_amount:
        interval = compute_median_interval(list(units.values()), families) if units else None
        median, low, high = interval or (None, None, None)
        if len(set(families)) < MIN_FAMILIES:
            low = high = None
        return row | {"median": _round(median), "low": _round(low), "high": _round(high)}
    bounds = _compute_bounds(column, results, subjects, names)
    return row | describe_share(list(units.values()), families, column.name) | {"bounds": bounds}


def describe_share(values: Sequence[float], families: Sequence[str], name: str) -> dict[str, float | None]:
    """Return the average of shares with its interval, which is null for fewer than `MIN_FAMILIES` families.

    Raises:
        InputError: the average is outside of 0..1.
    """
    if not values:
        return {"mean": None, "low": None, "high": None}
    share = compute_clustered_mean(values, families)
    if not 0 <= share.mean <= 1:
        raise InputError(f"the column {name} has values beyond 0 and 1", advice="name it in `amounts` of its metric")
    interval = compute_share_interval(share) if share.families >= MIN_FAMILIES else None
    low, high = interval or (None, None)
    return {"mean": _round(share.mean), "low": _round(low), "high": _round(high)}


def _compute_bounds(
    column: ColumnValues, results: RunResults, subjects: Mapping[str, ReportedSubject], names: Collection[str]
) -> list[float] | None:
    """Return the averages with everything missing as 0 and as 1; None where nothing is missing or open.

    A subject without a scored run counts where the column has values of its kind, or nothing of its kind was scored.
    """
    kinds = {subjects[name].subject.kind for name in (*column.values, *column.ranges)}
    scored_kinds = {subjects[name].subject.kind for name in subjects if results.list_scored(name)}
    ends: tuple[list[float], list[float]] = ([], [])
    n_missing = 0
    for name in sorted(names):
        kind = subjects[name].subject.kind
        values, ranges = list(column.values.get(name, ())), column.ranges.get(name, ())
        missing = results.runs - len(results.list_scored(name))
        has_none = not values and not ranges
        if has_none and (missing < results.runs or (kind in scored_kinds and kind not in kinds)):
            continue
        n_missing += missing + len(ranges)
        for place, end in enumerate(ends):
            filled = [*(entry[place] for entry in ranges), *[float(place)] * missing]
            end.append(column.metric.aggregate([*values, *filled]))
    if not n_missing:
        return None
    return [round(sum(end) / len(end), DIGITS) for end in ends]


def describe_passes(
    results: RunResults, subjects: Mapping[str, ReportedSubject], names: Collection[str]
) -> list[dict[str, Any]]:
    """Return pass@k and pass^k as rows, of the subjects that have k scored runs."""
    # Subjects with the same numbers share an estimate.
    compute = cache(compute_difficulty)
    counts = {
        name: compute(len(scored), sum(rollout.resolved for rollout in scored))
        for name in sorted(names)
        if (scored := results.list_scored(name))
    }
    rows = []
    for k in [k for k in KS if 1 < k <= results.runs]:
        for title, estimate in (("pass@", "estimate_pass_at"), ("pass^", "estimate_pass_all")):
            units = {name: getattr(count, estimate)(k) for name, count in counts.items() if count.n >= k}
            families = [subjects[name].family for name in units]
            share = describe_share(list(units.values()), families, title)
            rows.append(
                {"column": f"{title}{k}", "n": len(units), "families": len(set(families)), **share, "bounds": None}
            )
    return rows


def compare_columns(
    first: ColumnValues, second: ColumnValues, subjects: Mapping[str, ReportedSubject], names: Collection[str]
) -> PairedDifference | None:
    """Return the paired difference of a column, second minus first, over the subjects that both have."""
    before, after = first.aggregate(names), second.aggregate(names)
    shared = [name for name in before if name in after]
    if not shared:
        return None
    pick: Callable[[Mapping[str, float]], list[float]] = lambda values: [values[name] for name in shared]  # noqa: E731
    return compare_pairs(pick(before), pick(after), [subjects[name].family for name in shared])


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
