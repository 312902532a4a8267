"""`mergemill bench score`: submissions of others to a set, and metrics that need a judge or runs of tests."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.config import Settings
from core.errors import InputError, MergemillError, Transient, UsageError
from core.settings.models import BudgetSettings, JudgeSettings
from mergemill.cli import output
from mergemill.cli.bench.report import FORMATS, FormatOption, print_report
from mergemill.cli.bench.run import CHANGED
from mergemill.cli.options import GRADING_SETTINGS, MODEL_SETTINGS, PredictionsOption, split_words, with_settings
from taskdb.artifacts import require_writable_store
from taskdb.queries.bench import resolve_run
from taskdb.store import Store

if TYPE_CHECKING:
    from mergemill.bench.measuring import Measurer
    from mergemill.bench.metrics import Metric
    from mergemill.bench.scoring import ScoredFile
    from mergemill.bench.submissions import SubmittedFile
    from mergemill.grading.grading import TaskGrader
    from taskdb.records.bench import BenchRun, BenchSet

log = logging.getLogger(__name__)

SCORE_SETTINGS = (*GRADING_SETTINGS, *MODEL_SETTINGS, JudgeSettings, BudgetSettings, "workers")
DEFAULT_METRICS = ("resolved", "value")
SHOWN_ERRORS = 5

app = typer.Typer(add_completion=False)


@app.command("score")
@with_settings(*SCORE_SETTINGS)
def score(
    bench_set: Annotated[str, typer.Argument(metavar="SET", help="Name or file of a set.")],
    *,
    predictions: PredictionsOption = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN", help="Score a stored run by --metric; may be given several times."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME[,NAME]",
            show_default=False,
            help="As of `bench report`. review puts findings to the judge at --llm, swt runs tests. "
            "Default: resolved,value.",
        ),
    ] = None,
    changed: Annotated[
        str,
        typer.Option(
            "--changed",
            metavar="|".join(CHANGED),
            help="Stop where subjects have changed since the set was frozen, or leave these out.",
        ),
    ] = CHANGED[0],
    format_name: FormatOption = FORMATS[0],
    settings: Settings,
) -> None:
    """Score submissions of others to a set, or stored runs by metrics that need a judge or runs of tests.

    Each model of the file is a run, which `bench report` compares with others. What was graded or judged before is not
    graded or judged again.

    Example: mergemill bench score review-1 --predictions reviews.jsonl --metric review --llm URL --model M
    """
    if predictions is None and not run:
        raise UsageError("bench score needs --predictions FILE or --run RUN")
    if changed not in CHANGED:
        raise UsageError(f"--changed: {changed} is unknown", advice=f"one of {', '.join(CHANGED)}")
    if format_name not in FORMATS:
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join(FORMATS)}")
    # A wrong option is reported without loading the metrics.
    from mergemill.bench.metrics import load_metric  # noqa: PLC0415
    from mergemill.grading.grading import TaskGrader  # noqa: PLC0415

    words = tuple(dict.fromkeys(split_words(metric) or DEFAULT_METRICS))
    options = ScoreOptions(
        bench_set=bench_set,
        predictions=predictions,
        runs=tuple(run or ()),
        words=words,
        metrics=tuple(map(load_metric, words)),
        changed=changed,
        format_name=format_name,
    )
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        _score_set(TaskGrader(store, settings), options)


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Arguments of the command, checked. `words`: names of the metrics."""

    bench_set: str
    predictions: Path | None
    runs: tuple[str, ...]
    words: tuple[str, ...]
    metrics: tuple[Metric, ...]
    changed: str
    format_name: str


def _score_set(grader: TaskGrader, options: ScoreOptions) -> None:
    """Score a file and stored runs, and print their report; errors as of the command."""
    from mergemill.bench.reports import ReportRequest, build_report  # noqa: PLC0415 - as in the command
    from mergemill.bench.review_material import ReviewMaterials  # noqa: PLC0415
    from mergemill.bench.sets import open_set  # noqa: PLC0415

    store = grader.store
    as_json = options.format_name == "json"
    opened = open_set(store, options.bench_set)
    runs = [_resolve_run(store, opened, word) for word in options.runs]
    scored = None
    if options.predictions is not None:
        scored = _score_predictions(grader, opened, options.predictions, options.changed, as_json=as_json)
        runs += scored.runs
    errors: list[MergemillError] = []
    if measurers := _make_measurers(grader, options.words):
        runs, errors = _measure(grader, runs, measurers)
    if runs:
        request = ReportRequest(runs=runs, metrics=options.metrics)
        materials = ReviewMaterials.open(grader.settings.storage, require_writable_store(grader.settings.storage))
        report = build_report(store, materials, request)
        if scored is not None:
            report["predictions"] = _describe_file(scored)
        print_report(report, options.format_name)
    _raise_errors(errors)
    if scored is not None:
        scored.raise_failures()


def _resolve_run(store: Store, opened: BenchSet, word: str) -> BenchRun:
    run = resolve_run(store, word)
    if run.parent != opened.id:
        raise InputError(f"{word} is no run of {opened.name} {opened.version}", advice="mergemill bench list --runs")
    return run


def _score_predictions(grader: TaskGrader, opened: BenchSet, path: Path, changed: str, *, as_json: bool) -> ScoredFile:
    """Grade a file of predictions, and name the rows that do not count."""
    from mergemill.bench.scoring import ScoreRequest, score_file  # noqa: PLC0415 - as in the command
    from mergemill.grading.progress import make_score_progress  # noqa: PLC0415

    quiet = as_json or not log.isEnabledFor(logging.WARNING)
    scored = score_file(
        grader,
        ScoreRequest(bench_set=opened, path=path, changed=changed),
        lambda total: make_score_progress(total, as_json=False, quiet=quiet),
        output.print_message,
    )
    for model, number in scored.missing.items():
        if number:
            output.print_note(f"{model or 'no model name'}: {number} subjects without a row, which count as empty")
    for place, problem in _list_left_out(scored.submitted):
        output.print_message(f"{path}, {place}: {problem}")
    return scored


def _list_left_out(submitted: SubmittedFile) -> list[tuple[str, str]]:
    rows = [*submitted.malformed, *submitted.foreign, *submitted.left_out, *submitted.repeated]
    return [(row.place, row.problem) for row in rows]


def _describe_file(scored: ScoredFile) -> dict[str, Any]:
    """Return the part of a report on the file of predictions."""
    submitted = scored.submitted
    groups = {
        "malformed": submitted.malformed,
        "not_in_set": submitted.foreign,
        "left_out": submitted.left_out,
        "repeated": submitted.repeated,
    }
    listed = {name: [{"place": row.place, "problem": row.problem} for row in rows] for name, rows in groups.items()}
    return {"missing": scored.missing, "unscored": scored.failures.total(), **listed}


def _make_measurers(grader: TaskGrader, words: Sequence[str]) -> list[Measurer]:
    """Return the makers of measurements that the metrics read; without a model there is no judge."""
    from mergemill.bench.judging import ReviewJudging  # noqa: PLC0415 - as in the command
    from mergemill.bench.review_material import ReviewMaterials  # noqa: PLC0415
    from mergemill.bench.review_metric import REVIEW  # noqa: PLC0415
    from mergemill.bench.swt_metric import SWT  # noqa: PLC0415
    from mergemill.bench.swt_runs import SwtRuns  # noqa: PLC0415
    from mergemill.execution.services import make_model, make_services  # noqa: PLC0415

    settings = grader.settings
    measurers: list[Measurer] = []
    if REVIEW in words and (model := make_model(settings.llm, settings.host)):
        materials = ReviewMaterials.open(settings.storage, require_writable_store(settings.storage))
        measurers.append(ReviewJudging(model=model, settings=settings, materials=materials))
    if SWT in words:
        measurers.append(SwtRuns(services=make_services(settings, engine=False)))
    return measurers


def _measure(
    grader: TaskGrader, runs: Sequence[BenchRun], measurers: Sequence[Measurer]
) -> tuple[list[BenchRun], list[MergemillError]]:
    """Return the runs with their measurements, and the errors of submissions that were not measured."""
    from mergemill.bench.measuring import measure_run  # noqa: PLC0415 - as in the command
    from mergemill.execution.progress import make_count_progress  # noqa: PLC0415

    artifacts = require_writable_store(grader.settings.storage)
    measured = [
        measure_run(
            grader.store,
            artifacts,
            run,
            measurers,
            workers=grader.settings.cluster.workers,
            progress=make_count_progress("submission", 0),
        )
        for run in runs
    ]
    return [result.run for result in measured], [error for result in measured for error in result.errors]


def _raise_errors(errors: Sequence[MergemillError]) -> None:
    """Raise where submissions were not measured: 1 for a bug, else 75."""
    for error in errors[:SHOWN_ERRORS]:
        output.print_message(error.format_line())
    if any(type(error) is MergemillError for error in errors):
        raise MergemillError(f"{len(errors)} submissions could not be measured")
    if errors:
        raise Transient(f"{len(errors)} submissions not measured", advice="run the same command again")
