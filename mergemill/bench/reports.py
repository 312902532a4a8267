"""Reports of runs: made of stored rollouts alone, the same bytes each time."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import InputError, UsageError
from core.settings.agents import SelectionSettings
from core.text import format_count
from evaluation.statistics.comparisons import correct_holm
from mergemill.bench.comparability import RunGrading, check_graders, check_judges, collect_grading, is_mixed
from mergemill.bench.figures import (
    ColumnDifference,
    ColumnValues,
    RunCoverage,
    collect_columns,
    compare_columns,
    describe_column,
    describe_difference,
    describe_passes,
    measure_coverage,
)
from mergemill.bench.metrics import Metric, MetricContext
from mergemill.bench.results import ORIGINS, ReportedSubject, RunResults, load_results, load_subjects, sort_values
from samplers.selection.rules import list_broken_rules
from taskdb.queries.bench import SCENARIO, name_run
from taskdb.records.bench import PREDICTIONS, BenchRun, BenchSet
from taskdb.records.rollouts import Rollout, RolloutStatus
from training_data.card import render_table

if TYPE_CHECKING:
    from mergemill.bench.review_material import ReviewMaterials
    from taskdb.store import Store

SCHEMA = 1
RunColumns = Mapping[str, ColumnValues]
"""Columns of a run by name."""
INCOMPLETE, IDENTICAL = "incomplete", "runs-identical"
MIXED_GRADERS, UNKNOWN_GRADER = "mixed-graders", "unknown-grader"
FIGURES = ("run", "group", "column", "mean", "low", "high", "bounds", "median", "n", "families")
DIFFERENCES = (
    *("run", "against", "column", "difference", "low", "high", "bounds", "open"),
    *("p", "p_holm", "detectable", "n", "families"),
)


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """Runs of a set that are reported, and how."""

    runs: Sequence[BenchRun]
    metrics: Sequence[Metric]
    by: Sequence[str] = ()
    """Some of ORIGINS."""
    against: BenchRun | None = None
    """Run that the others are compared with."""
    cutoff: str = ""
    """ISO date; subjects from before it are reported apart. Empty for the dates that the runs have."""


@dataclass(frozen=True, kw_only=True)
class ReportPart:
    """Part of a report that is of a run alone."""

    run: BenchRun
    description: dict[str, Any]
    """Facts besides its figures."""
    figures: list[dict[str, Any]]
    columns: RunColumns
    coverage: RunCoverage
    grading: RunGrading


def build_report(store: Store, materials: ReviewMaterials, request: ReportRequest) -> dict[str, Any]:
    """Return the report of some runs as JSON data.

    Raises:
        InputError: the runs are of several sets, another version of the grader or another judge scored a run that is
            compared, or a rollout is missing.
        UsageError: there is no fact to group by of that name.
    """
    if unknown := [name for name in request.by if name not in ORIGINS]:
        raise UsageError(f"--by: {unknown[0]} is unknown", advice=f"of {', '.join(ORIGINS)}")
    runs = [*request.runs, *([request.against] if request.against else [])]
    if len({run.parent for run in runs}) > 1:
        raise InputError("the runs are of several sets", advice="report runs of one set and version together")
    bench_set = store.get(BenchSet, runs[0].parent)
    subjects = load_subjects(store, bench_set)
    prepare_metrics(store, materials, bench_set, subjects, request.metrics)
    with _pause_garbage_collection():
        reports = [report_run(load_results(store, materials.artifacts, run), subjects, request) for run in runs]
        return join_reports(bench_set, subjects, reports, request)


def prepare_metrics(
    store: Store,
    materials: ReviewMaterials,
    bench_set: BenchSet,
    subjects: Mapping[str, ReportedSubject],
    metrics: Sequence[Metric],
) -> None:
    """Give metrics the data that they read besides rollouts."""
    context = MetricContext(
        store=store,
        artifacts=materials.artifacts,
        materials=materials,
        bench_set=bench_set,
        tasks={subject.task.id: subject.task for subject in subjects.values() if subject.task},
    )
    for metric in metrics:
        metric.prepare(context)


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Search for no cycles of garbage meanwhile: records have none, and would be scanned again and again.

    What is in no cycle is freed at once, so that the rollouts of a single run are in memory at a time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def report_run(results: RunResults, subjects: Mapping[str, ReportedSubject], request: ReportRequest) -> ReportPart:
    """Return the part of a report that is of a run alone, which holds none of its rollouts."""
    coverage = measure_coverage(results, subjects)
    names = _list_names(results.run, subjects)
    scored = [rollout for name in names for rollout in results.list_scored(name)]
    for metric in request.metrics:
        metric.begin_run(scored)
    columns = collect_columns(results, subjects, request.metrics, coverage)
    return ReportPart(
        run=results.run,
        description=_describe_run(results, subjects, request.metrics),
        figures=_make_figures(results, columns, subjects, request),
        columns=columns,
        coverage=coverage,
        grading=collect_grading(results, scored, request.metrics),
    )


def join_reports(
    bench_set: BenchSet, subjects: Mapping[str, ReportedSubject], reports: Sequence[ReportPart], request: ReportRequest
) -> dict[str, Any]:
    """Return the report of some runs, of which the last is that of `request.against` where the others are compared.

    Raises:
        InputError: another version of the grader or another judge scored a run that is compared.
    """
    if request.against:
        gradings = [report.grading for report in reports]
        check_graders(gradings)
        check_judges(gradings)
    pairs = {(name, report.run.scaffold) for report in reports for name in report.run.left_out}
    unpredicted = {
        (name, scaffold)
        for name, scaffold in pairs
        if scaffold == PREDICTIONS and subjects[name].subject.kind == SCENARIO
    }
    return {
        "schema": SCHEMA,
        "left_out": sorted({name for name, _ in pairs - unpredicted}),
        "unpredicted": sorted({name for name, _ in unpredicted}),
        "set": _describe_set(bench_set, subjects),
        "runs": [report.description for report in reports],
        "figures": [row for report in reports for row in report.figures],
        "differences": _compare(reports, subjects, request) if request.against else [],
    }


def _describe_set(bench_set: BenchSet, subjects: Mapping[str, ReportedSubject]) -> dict[str, Any]:
    return {
        "name": bench_set.name,
        "version": bench_set.version,
        "id": bench_set.id,
        "held_out": bench_set.held_out,
        "subjects": len(subjects),
        "families": len({subject.family for subject in subjects.values()}),
        "kinds": dict(sorted(Counter(subject.subject.kind for subject in subjects.values()).items())),
    }


def _describe_run(
    results: RunResults, subjects: Mapping[str, ReportedSubject], metrics: Sequence[Metric]
) -> dict[str, Any]:
    """Return the facts of a run besides its figures: numbers of rollouts, ends, flags, leaks, broken rules, metrics."""
    run = results.run
    names = _list_names(run, subjects)
    scored = {name: len(results.list_scored(name)) for name in names}
    rollouts = [rollout for name in names for rollout in results.rollouts.get(name, ())]
    graders = sorted({rollout.score.grader for rollout in rollouts if rollout.score})
    incomplete = sum(number < results.runs for number in scored.values())
    scored_rollouts = [rollout for name in names for rollout in results.list_scored(name)]
    described = {metric.name: facts for metric in metrics if (facts := metric.describe(scored_rollouts))}
    flags = [
        *([INCOMPLETE] if incomplete else []),
        *([IDENTICAL] if results.identical else []),
        *([MIXED_GRADERS] if is_mixed(rollouts, subjects) else []),
        *([UNKNOWN_GRADER] if "" in graders else []),
    ]
    return {
        "run": name_run(run),
        "id": run.id,
        "scaffold": run.scaffold,
        "scaffold_version": run.scaffold_version,
        "model": run.model,
        "checkpoint": run.checkpoint,
        "sampling": dict(sorted(run.sampling.items())),
        "k": results.runs,
        "subjects": len(names),
        "scored": sum(scored.values()),
        "planned": results.runs * len(names),
        "incomplete": incomplete,
        "flags": flags,
        "graders": list(filter(None, graders)),
        **({"regraded": len(results.first_scores)} if results.first_scores else {}),
        "ends": dict(sorted(Counter(rollout.reason or rollout.status.value for rollout in rollouts).items())),
        "leaks": dict(sorted(Counter(leak.name for rollout in rollouts for leak in rollout.leaks).items())),
        "quality": _count_broken_rules(results, subjects, rollouts),
        **({"metrics": described} if described else {}),
    }


def _count_broken_rules(
    results: RunResults, subjects: Mapping[str, ReportedSubject], rollouts: Sequence[Rollout]
) -> dict[str, Any]:
    """Return how many rollouts have conversations, and rule of rejection sampling -> those of them that break it.

    The limits are those that `trajectories select` has by default.
    """
    limits = SelectionSettings()
    n_measured, broken = 0, Counter[str]()
    for rollout in rollouts:
        measures = results.measures.get(rollout.id, ())
        task = subjects[rollout.name].task
        kind = task.kind if task else None
        rules = [rule for metrics in measures for rule in list_broken_rules(metrics, kind, limits)]
        broken.update({rule.name for rule in rules})
        n_measured += bool(measures)
    return {"measured": n_measured, "rules": dict(sorted(broken.items()))}


def _list_names(run: BenchRun, subjects: Mapping[str, ReportedSubject]) -> list[str]:
    return [name for name in sorted(subjects) if name not in run.left_out]


def _make_figures(
    results: RunResults, columns: RunColumns, subjects: Mapping[str, ReportedSubject], request: ReportRequest
) -> list[dict[str, Any]]:
    """Return the rows of a run: those of all subjects, and those of each group."""
    rows = []
    cutoff = request.cutoff or results.run.cutoff
    for group, names in _group(_list_names(results.run, subjects), subjects, request.by, cutoff):
        figures = [describe_column(column, subjects, names) for column in columns.values()]
        if "resolved" in columns:
            figures += describe_passes(results, subjects, names)
        rows += [{"run": name_run(results.run), "group": group, **row} for row in figures]
    return rows


def _group(
    names: Sequence[str], subjects: Mapping[str, ReportedSubject], by: Sequence[str], cutoff: str
) -> list[tuple[str, Collection[str]]]:
    """Return the name of each group and its subjects; first all, which has an empty name."""
    groups: dict[str, list[str]] = {}
    for fact in by:
        for value in sort_values({subjects[name].origin[fact] for name in names}, fact):
            groups[f"{fact}={value or '-'}"] = [name for name in names if subjects[name].origin[fact] == value]
    if cutoff:
        before = [name for name in names if "" < subjects[name].created_at < cutoff]
        groups[f"before {cutoff}"] = before
        groups[f"from {cutoff}"] = [name for name in names if name not in set(before)]
    return [("", names), *((title, members) for title, members in groups.items() if members)]


def _compare(
    reports: Sequence[ReportPart], subjects: Mapping[str, ReportedSubject], request: ReportRequest
) -> list[dict[str, Any]]:
    """Return the differences of all columns of shares; p values of several runs are corrected by Holm's method."""
    assert request.against is not None  # noqa: S101 - for the type checker
    parts = {report.run.id: report for report in reports}
    base = parts[request.against.id]
    rows = []
    for column in dict.fromkeys((*base.columns, *(name for run in request.runs for name in parts[run.id].columns))):
        differences: dict[str, ColumnDifference] = {}
        for run in request.runs:
            names = [name for name in _list_names(run, subjects) if name not in request.against.left_out]
            if difference := _compare_parts(base, parts[run.id], column, subjects, names):
                differences[run.id] = difference
        corrected = correct_holm(
            {key: difference.paired.probability for key, difference in differences.items() if difference.paired}
        )
        for run in request.runs:
            if run.id in differences:
                row = describe_difference(differences[run.id], corrected.get(run.id))
                names_of = {"run": name_run(run), "against": name_run(request.against), "column": column}
                rows.append(names_of | row)
    return rows


def _compare_parts(
    base: ReportPart, other: ReportPart, column: str, subjects: Mapping[str, ReportedSubject], names: Sequence[str]
) -> ColumnDifference | None:
    """Return the difference of a column between two runs; None for amounts, and where no subject has it in both.

    A run without any score of a column has it without values: all is missing there.
    """
    known = base.columns.get(column) or other.columns.get(column)
    if known is None or known.is_amount:
        return None
    before, after = (
        part.columns.get(column) or ColumnValues(name=column, metric=known.metric, coverage=part.coverage, values={})
        for part in (base, other)
    )
    return compare_columns(before, after, subjects, names)


def list_remarks(report: Mapping[str, Any]) -> list[str]:
    """Return the lines before the figures of a report: subjects left out, size of the set, rollouts of each run."""
    bench_set = report["set"]
    remarks = []
    if left_out := report["left_out"]:
        remarks.append(
            f"{len(left_out)} of {bench_set['subjects']} subjects left out, changed-subject: {', '.join(left_out)}"
        )
    if unpredicted := report["unpredicted"]:
        names = ", ".join(unpredicted)
        remarks.append(f"{len(unpredicted)} of {bench_set['subjects']} subjects take no predictions: {names}")
    size = f"{bench_set['subjects']} subjects in {bench_set['families']} families"
    remarks.append(f"{bench_set['name']} {bench_set['version']}: {size}")
    for run in report["runs"]:
        flags = f" ({', '.join(run['flags'])})" if run["flags"] else ""
        remarks.append(f"{run['run']}: {run['scored']} of {run['planned']} rollouts scored, k = {run['k']}{flags}")
        remarks += [f"{run['run']}: {remark}" for remark in _list_run_remarks(run)]
    return remarks


def _list_run_remarks(run: Mapping[str, Any]) -> list[str]:
    """Return the lines on the rollouts of a run: other ends than `done`, leaks, broken rules, and those of metrics."""
    quality = run["quality"]
    counts = {
        "ended by": run["ends"] if set(run["ends"]) - {RolloutStatus.DONE.value} else {},
        "leaks:": run["leaks"],
        f"of {format_count(quality['measured'], 'conversation')}, that break rules of selection:": quality["rules"],
    }
    lines = [f"{title} {_format_counts(numbers)}" for title, numbers in counts.items() if numbers]
    if number := run.get("regraded"):
        lines.append(f"{format_count(number, 'rollout')} graded again since")
    return [*lines, *(remark for facts in run.get("metrics", {}).values() for remark in facts["remarks"])]


def _format_counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def render_markdown(report: Mapping[str, Any]) -> str:
    """Return a report as Markdown."""
    blocks = ["\n".join(f"- {remark}" for remark in list_remarks(report))]
    for title, columns, rows in (
        ("Figures", FIGURES, report["figures"]),
        ("Differences", DIFFERENCES, report["differences"]),
    ):
        if rows:
            cells = [[format_cell(row.get(name)) for name in columns] for row in rows]
            blocks += [f"## {title}", render_table(columns, cells, numbers=columns[3:])]
    return "\n\n".join([f"# {report['set']['name']}", *blocks]) + "\n"


def format_cell(value: object) -> str:
    """Return the text of a figure."""
    if value is None or value == "":
        return "-"
    if isinstance(value, list):
        return " to ".join(map(format_cell, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
