"""`mergemill grade --predictions`: the scores of a file of submissions."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.config import Settings
from core.errors import InputError, MergemillError, Transient
from core.text import format_count
from mergemill.cli import output
from mergemill.execution.clusters import LOCAL, check_cluster_settings
from mergemill.grading.grading import TaskGrader
from mergemill.grading.predictions import (
    MalformedRow,
    Prediction,
    PredictionRun,
    PredictionScore,
    ScoreFile,
    read_predictions,
    select_missing,
)
from mergemill.grading.progress import ScoreProgress, make_score_progress
from taskdb.artifacts import require_writable_store
from taskdb.store import Store

log = logging.getLogger(__name__)

MAX_CONSECUTIVE_FAILURES = 4
"""Consecutive submissions without a score, beyond the number of workers, after which the command ends."""


def grade_predictions(path: Path, out: Path, settings: Settings, *, as_json: bool) -> None:
    """Grade the submissions of a file that the file `out` has no scores of, and print a summary.

    Raises:
        InputError: a file cannot be read, the store cannot be written, or rows are malformed; the others were graded.
        MachineError: no engine answers at the start.
        Transient: some submissions are unscored.
    """
    check_cluster_settings(settings.cluster)
    with Store.open(settings.storage.db, create=False) as store:
        grader = TaskGrader(store, settings)
        rows, malformed = read_predictions(path, grader)
        with ScoreFile(out) as scores:
            missing = select_missing(rows, scores.scored)
            with_image = next((row for row in missing if row.submission.task.image), None)
            if with_image and settings.cluster.address == LOCAL:
                grader.open_services(with_image.submission.task)
            if missing:
                require_writable_store(settings.storage)
            quiet = not log.isEnabledFor(logging.WARNING)
            progress = make_score_progress(len(missing), as_json=as_json, quiet=quiet)
            failures = _grade_rows(PredictionRun(grader, output.print_message), missing, scores, progress)
    _print_summary(progress, len(rows) - len(missing), malformed, out, as_json=as_json)
    for row in malformed:
        output.print_message(f"{path}, {row.place}: {row.problem}")
    _raise_failures(failures, len(malformed))


def _grade_rows(
    run: PredictionRun, rows: Sequence[Prediction], scores: ScoreFile, progress: ScoreProgress
) -> Counter[int]:
    """Write the score of each row; return exit code -> rows without a score.

    Ends early when none is scored any more.
    """
    failures, in_row = Counter[int](), 0
    with progress:
        for graded in run.iterate_scores(rows):
            scores.add(graded.to_fields())
            progress.add(graded)
            if graded.score.value is not None:
                in_row = 0
                continue
            in_row += 1
            failures[_report_failure(graded)] += 1
            if in_row >= run.grader.settings.cluster.workers + MAX_CONSECUTIVE_FAILURES:
                break
    return failures


def _report_failure(graded: PredictionScore) -> int:
    """Report why a row has no score, and return the exit code that stands for it."""
    name = f"{graded.prediction.place}, {graded.prediction.instance}"
    if graded.error is None or isinstance(graded.error, MergemillError):
        output.print_message(f"{name}: {graded.score.infrastructure_error}")
        return Transient.exit_code if graded.error is None else graded.error.exit_code
    log.error("%s: grading failed through a bug", name, exc_info=graded.error)
    return MergemillError.exit_code


def _print_summary(
    progress: ScoreProgress, n_kept: int, malformed: Sequence[MalformedRow], out: Path, *, as_json: bool
) -> None:
    counts = progress.counts
    summary: dict[str, Any] = {
        "event": "summary",
        "graded": progress.line.n_finished,
        "resolved": counts["resolved"],
        "failed": counts["failed"],
        "unscored": counts["unscored"],
        "kept": n_kept,
        "malformed": len(malformed),
        "left": progress.line.total - progress.line.n_finished,
        "out": str(out),
    }
    if as_json:
        output.print_json(summary)
    else:
        output.print_fields(list(summary.items())[1:])


def _raise_failures(failures: Counter[int], n_malformed: int) -> None:
    """Raise the failure of highest priority: 75 (run again), 1 (report a bug), 3 (correct an input)."""
    if n_unscored := failures[Transient.exit_code]:
        advice = "run the same command again: it grades what is missing"
        raise Transient(f"{format_count(n_unscored, 'submission')} unscored", advice=advice)
    if n_bugs := failures[MergemillError.exit_code]:
        raise MergemillError(f"{format_count(n_bugs, 'grading')} failed through a bug")
    if n_wrong := failures.total() + n_malformed:
        raise InputError(f"{format_count(n_wrong, 'row')} could not be graded; the others are done")
