"""Figures of columns over subjects: averages with intervals and bounds, medians, and paired differences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

from core.errors import InputError
from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.comparisons import PairedDifference, compare_pairs
from evaluation.statistics.intervals import MIN_FAMILIES, compute_median_interval, compute_share_interval
from mergemill.bench.metrics import Metric, OpenValue
from mergemill.bench.results import ReportedSubject, RunResults
from taskdb.records.difficulty import compute_difficulty

KS = (1, 2, 4, 8, 16)
DIGITS = 6


class UnitEnds(NamedTuple):
    """Value of a subject with everything missing as 0 and as 1, and open values at the ends of their ranges."""

    low: float
    high: float
    is_open: bool
    """Whether a run is missing or a value is open."""


@dataclass(frozen=True, kw_only=True)
class RunCoverage:
    """Runs of the subjects of a set that were scored. `kinds`: subject -> its kind; `scored`: subject -> number."""

    runs: int
    kinds: Mapping[str, str]
    scored: Mapping[str, int]

    @cached_property
    def scored_kinds(self) -> frozenset[str]:
        """Kinds of which a run was scored."""
        return frozenset(self.kinds[name] for name, number in self.scored.items() if number)

    def count_missing(self, name: str) -> int:
        """Return the number of runs of a subject without a score."""
        return self.runs - self.scored[name]


@dataclass(frozen=True, kw_only=True)
class ColumnValues:
    """Values of a column: subject -> those of its scored runs; and those that are open, as their ranges."""

    name: str
    metric: Metric
    coverage: RunCoverage
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

    @cached_property
    def ends(self) -> Mapping[str, UnitEnds]:
        """Subject -> its ends, by name, for those that the column applies to.

        To a subject without a scored run it applies where it has values of its kind, or nothing of its kind was scored.
        """
        coverage = self.coverage
        kinds = {coverage.kinds[name] for name in (*self.values, *self.ranges)}
        ends = {}
        for name, kind in coverage.kinds.items():
            values, ranges = self.values.get(name, ()), self.ranges.get(name, ())
            has_none = not values and not ranges
            if has_none and (coverage.scored[name] or (kind in coverage.scored_kinds and kind not in kinds)):
                continue
            missing = coverage.count_missing(name)
            low, high = (
                self.metric.aggregate([*values, *(entry[place] for entry in ranges), *[float(place)] * missing])
                for place in (0, 1)
            )
            ends[name] = UnitEnds(low, high, is_open=bool(missing or ranges))
        return ends

    def aggregate(self, names: Collection[str]) -> dict[str, float]:
        """Return subject -> its value, for those of some subjects that have any."""
        wanted = set(names)
        return {name: value for name, value in self.units.items() if name in wanted}


def measure_coverage(results: RunResults, subjects: Mapping[str, ReportedSubject]) -> RunCoverage:
    """Return how many runs of each subject were scored."""
    names = sorted(subjects)
    return RunCoverage(
        runs=results.runs,
        kinds={name: subjects[name].subject.kind for name in names},
        scored={name: len(results.list_scored(name)) for name in names},
    )


def collect_columns(
    results: RunResults,
    subjects: Mapping[str, ReportedSubject],
    metrics: Sequence[Metric],
    coverage: RunCoverage,
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
                ColumnValues(
                    name=column,
                    metric=metric,
                    coverage=coverage,
                    values=values.get(column, {}),
                    ranges=ranges.get(column, {}),
                ),
            )
    return columns


def describe_column(
    column: ColumnValues, subjects: Mapping[str, ReportedSubject], names: Collection[str]
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
    bounds = _compute_bounds([column.ends[name] for name in sorted(names) if name in column.ends])
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


def _compute_bounds(ends: Sequence[UnitEnds]) -> list[float] | None:
    """Return the averages of both ends of some subjects; None where nothing is missing or open."""
    if not any(unit.is_open for unit in ends):
        return None
    return [round(sum(unit[place] for unit in ends) / len(ends), DIGITS) for place in (0, 1)]


def describe_passes(
    results: RunResults, subjects: Mapping[str, ReportedSubject], names: Collection[str]
) -> list[dict[str, Any]]:
    """Return pass@k and pass^k as rows, of the subjects that have k scored runs; bounds are over all subjects."""
    # Subjects with the same numbers share an estimate.
    compute = cache(compute_difficulty)
    scored = {name: results.list_scored(name) for name in sorted(names)}
    resolved = {name: sum(rollout.resolved for rollout in rollouts) for name, rollouts in scored.items()}
    counts = {name: compute(len(rollouts), resolved[name]) for name, rollouts in scored.items() if rollouts}
    missing = {name: results.runs - len(rollouts) for name, rollouts in scored.items()}
    ends = {
        name: (compute(results.runs, resolved[name]), compute(results.runs, resolved[name] + number))
        for name, number in missing.items()
    }
    rows = []
    for k in [k for k in KS if 1 < k <= results.runs]:
        for title, estimate in (("pass@", "estimate_pass_at"), ("pass^", "estimate_pass_all")):
            units = {name: getattr(count, estimate)(k) for name, count in counts.items() if count.n >= k}
            families = [subjects[name].family for name in units]
            share = describe_share(list(units.values()), families, title)
            filled = [
                UnitEnds(getattr(least, estimate)(k), getattr(most, estimate)(k), is_open=missing[name] > 0)
                for name, (least, most) in ends.items()
            ]
            row = {"column": f"{title}{k}", "n": len(units), "families": len(set(families))}
            rows.append(row | share | {"bounds": _compute_bounds(filled)})
    return rows


@dataclass(frozen=True, kw_only=True)
class ColumnDifference:
    """Difference of a column between two runs, second minus first, over subjects that it applies to in both."""

    mean: float | None
    """Over the subjects that have a value in both; None where none has."""
    paired: PairedDifference | None
    """Interval and test of it; None for fewer than two families."""
    n: int
    families: int
    n_open: int
    """Subjects that lack a run or have an open value in either run."""
    bounds: list[float] | None
    """Least and largest difference, with everything missing as 0 and as 1; None where nothing is missing or open."""


def compare_columns(
    first: ColumnValues, second: ColumnValues, subjects: Mapping[str, ReportedSubject], names: Collection[str]
) -> ColumnDifference | None:
    """Return the paired difference of a column, second minus first; None where no subject has it in both runs."""
    before, after = first.aggregate(names), second.aggregate(names)
    shared = [name for name in before if name in after]
    families = [subjects[name].family for name in shared]
    pairs = [
        (first.ends[name], second.ends[name]) for name in sorted(names) if name in first.ends and name in second.ends
    ]
    if not pairs:
        return None
    ends = [UnitEnds(new.low - old.high, new.high - old.low, is_open=old.is_open or new.is_open) for old, new in pairs]
    differences = [after[name] - before[name] for name in shared]
    old_values, new_values = ([values[name] for name in shared] for values in (before, after))
    return ColumnDifference(
        mean=compute_clustered_mean(differences, families).mean if shared else None,
        paired=compare_pairs(old_values, new_values, families) if shared else None,
        n=len(shared),
        families=len(set(families)),
        n_open=sum(unit.is_open for unit in ends),
        bounds=_compute_bounds(ends),
    )


def describe_difference(difference: ColumnDifference, corrected: float | None) -> dict[str, Any]:
    """Return the figures of a difference; `corrected`: its p value among those of several runs.

    Interval and detectable difference are null for fewer than `MIN_FAMILIES` families. Shares differ by -1 to 1, so
    the interval ends there.
    """
    paired = difference.paired
    low = high = detectable = None
    if paired and difference.families >= MIN_FAMILIES:
        low, high, detectable = max(-1.0, paired.low), min(1.0, paired.high), paired.detectable
    return {
        "difference": _round(difference.mean),
        "low": _round(low),
        "high": _round(high),
        "bounds": difference.bounds,
        "open": difference.n_open,
        "p": _round(paired.probability if paired else None),
        "p_holm": _round(corrected),
        "detectable": _round(detectable),
        "n": difference.n,
        "families": difference.families,
    }


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
