"""Page of a bench: a set with its subjects, and the reports of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from core.errors import InputError
from mergemill.bench.listing import summarize_run, summarize_set
from mergemill.bench.metrics import DEFAULT_METRICS, METRICS, load_metric
from mergemill.bench.reports import ReportPart, ReportRequest, format_cell, join_reports, prepare_metrics, report_run
from mergemill.bench.results import ORIGINS, load_results, load_subjects
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.sets import NOT_THERE, find_changed_subjects
from mergemill.web.context import WebContext
from taskdb.queries.bench import SCENARIO, list_runs, list_sets, name_run, resolve_set
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.rollouts import Rollout

MAX_RUNS = 8
"""Runs that a page reports; the others can be chosen."""
SUBJECTS = 100
"""Subjects of a page."""


@dataclass(frozen=True, kw_only=True)
class BenchChoice:
    """Parameters of the page of a set."""

    runs: tuple[str, ...] = ()
    """Ids of the runs that are reported; empty for the first ones."""
    against: str = ""
    """Id of the run that the others are compared with."""
    by: str = ""
    """Fact by which subjects are grouped as well."""
    metric: str = ""
    start: int = 0
    """Number of the first subject that is shown."""

    def link(self, **changes: object) -> str:
        """Return the query of the page with some parameters changed; None removes one."""
        given: dict[str, Any] = {"run": self.runs, "against": self.against, "by": self.by, "metric": self.metric}
        return "?" + urlencode({name: value for name, value in (given | changes).items() if value}, doseq=True)


@dataclass(kw_only=True)
class ReportedRuns:
    """Reports of the runs of a page, and the rollouts that it links to."""

    report: Mapping[str, Any] = field(default_factory=dict)
    figures: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Run -> its rows of the report: runs that differ in sampling alone have the same name."""
    attempts: dict[str, Mapping[str, Sequence[Rollout]]] = field(default_factory=dict)
    """Run -> subject that is shown -> its rollouts in the order of their attempts."""
    problems: list[str] = field(default_factory=list)
    """Why a run, or the comparison, is not reported."""


def show_bench(context: WebContext, request: Request) -> Response:
    """Show a set: its subjects, and the reports of its runs."""
    bench_set = resolve_set(context.store, request.path_params["name"])
    runs = [run for run in list_runs(context.store) if run.parent == bench_set.id]
    choice = _read_choice(request.query_params, runs)
    shown = bench_set.subjects[choice.start : choice.start + SUBJECTS]
    end = choice.start + len(shown)
    values = {
        "active": "bench",
        "bench_set": bench_set,
        "summary": summarize_set(bench_set),
        "versions": [other for other in list_sets(context.store) if other.name == bench_set.name],
        "runs": [summarize_run(run, bench_set) for run in runs],
        "reported": _report(context, bench_set, choice, runs, frozenset(subject.name for subject in shown)),
        "choice": choice,
        "facts": ORIGINS,
        "metrics": tuple(METRICS),
        "subjects": shown,
        "changed": {subject.name: subject.problem for subject in find_changed_subjects(context.store, bench_set)},
        "scenario": SCENARIO,
        "not_there": NOT_THERE,
        "cell": format_cell,
        "earlier": choice.link(**{"from": max(0, choice.start - SUBJECTS)}) if choice.start else None,
        "later": choice.link(**{"from": end}) if end < len(bench_set.subjects) else None,
    }
    return context.render("bench.html", values)


def _read_choice(parameters: QueryParams, runs: Sequence[BenchRun]) -> BenchChoice:
    """Return the parameters of the page of a set.

    Raises:
        InputError: a run is not of the set, or there is no such fact or metric. Metrics of a user's own are code, which
            no request may load.
    """
    chosen, against = tuple(dict.fromkeys(parameters.getlist("run"))), parameters.get("against", "")
    ids = {run.id for run in runs}
    if unknown := [word for word in (*chosen, against) if word and word not in ids]:
        raise InputError(f"there is no run {unknown[0][:100]} of this set")
    by, metric = parameters.get("by", ""), parameters.get("metric", "")
    for noun, word, words in (("fact", by, ORIGINS), ("metric", metric, METRICS)):
        if word and word not in words:
            raise InputError(f"there is no {noun} {word[:100]}", advice=f"one of {', '.join(words)}")
    start = parameters.get("from", "0")
    # Python refuses to convert texts of thousands of digits.
    number = int(start) if start.isdecimal() and len(start) < 9 else 0
    return BenchChoice(runs=tuple(filter(None, chosen)), against=against, by=by, metric=metric, start=number)


def _report(
    context: WebContext, bench_set: BenchSet, choice: BenchChoice, runs: Sequence[BenchRun], shown: frozenset[str]
) -> ReportedRuns:
    """Return the reports of the chosen runs, without those that cannot be reported or compared.

    Args:
        context: database and artifacts.
        bench_set: the set.
        choice: runs, metric and groups of the page.
        runs: all runs of the set.
        shown: names of the subjects whose rollouts are shown.
    """
    base = next((run for run in runs if run.id == choice.against), None)
    wanted = [run for run in runs if run is not base and (not choice.runs or run.id in choice.runs)][:MAX_RUNS]
    names = (choice.metric,) if choice.metric else DEFAULT_METRICS
    by = (choice.by,) if choice.by else ()
    request = ReportRequest(runs=wanted, metrics=[load_metric(name) for name in names], by=by, against=base)
    subjects = load_subjects(context.store, bench_set)
    materials = ReviewMaterials.open(context.storage, context.artifacts)
    prepare_metrics(context.store, materials, bench_set, subjects, request.metrics)
    reported, reports = ReportedRuns(), list[ReportPart]()
    for run in [*wanted, *([base] if base else [])]:
        try:
            results = load_results(context.store, context.artifacts, run)
            reports.append(report_run(results, subjects, request))
        except InputError as error:
            reported.problems.append(f"{name_run(run)}: {error}")
            continue
        reported.figures[run.id] = reports[-1].figures
        reported.attempts[run.id] = {name: group for name, group in results.rollouts.items() if name in shown}
    known = {report.run.id for report in reports}
    if base is not None and base.id not in known:
        base = None
    request = replace(request, runs=[run for run in wanted if run.id in known], against=base)
    try:
        reported.report = join_reports(bench_set, subjects, reports, request)
    except InputError as error:
        reported.problems.append(str(error))
        reported.report = join_reports(bench_set, subjects, reports, replace(request, against=None))
    return reported
