"""Runs of submissions from a file: each is graded once, and a subject without a row has handed in nothing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import InputError, MergemillError, Transient
from evaluation.instructions.checklist import VOID_PART
from mergemill.bench.measurements import list_graders
from mergemill.bench.running import SKIP, STOP, check_subjects
from mergemill.bench.submissions import SubmittedFile, UngradedSubject, read_submissions
from mergemill.execution.grader_version import compute_grader_version
from mergemill.grading.grading import TaskGrader
from mergemill.grading.predictions import Prediction, PredictionRun, PredictionScore
from mergemill.grading.progress import ScoreProgress
from mergemill.pipeline.kinds import TASK_KINDS
from taskdb.artifacts import Artifacts, require_writable_store
from taskdb.queries.bench import SCENARIO
from taskdb.records import Score, Task
from taskdb.records.bench import PREDICTIONS, BenchRun, BenchSet
from taskdb.records.rollouts import Rollout, RolloutStatus
from taskdb.store import Store

VERSION = "1"
FORMS: Mapping[str, str] = {kind.value: row.reward.submission for kind, row in TASK_KINDS.items()}
"""Kind of a task -> form of its submissions."""
MAX_FAILURES_IN_ROW = 4
"""Submissions in a row without a score, beyond the number of workers, after which no more are graded."""


@dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """A set and a file of submissions to it."""

    bench_set: BenchSet
    path: Path
    changed: str = STOP
    """`stop` or `skip`, for a set with subjects that have changed."""


@dataclass(kw_only=True)
class ScoredFile:
    """Runs of a file of submissions, a run for each model, and the number of gradings that failed."""

    submitted: SubmittedFile
    runs: list[BenchRun] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    """Model -> subjects without a row, which count as empty."""
    failures: Counter[int] = field(default_factory=Counter)
    """Exit code -> submissions without a score."""

    def raise_failures(self) -> None:
        """Raise the failure of highest priority: 75 (run again), 1 (report a bug), 3 (correct an input)."""
        if number := self.failures[Transient.exit_code]:
            raise Transient(f"{number} submissions unscored", advice="run the same command again")
        if number := self.failures[MergemillError.exit_code]:
            raise MergemillError(f"{number} gradings failed through a bug")
        number = self.failures.total() + len(self.submitted.malformed) + len(self.submitted.foreign)
        if number:
            raise InputError(f"{number} rows could not be graded; the others are scored")


def score_file(
    grader: TaskGrader,
    request: ScoreRequest,
    make_progress: Callable[[int], ScoreProgress],
    notify: Callable[[str], None] = lambda _: None,
) -> ScoredFile:
    """Grade the submissions of a file and store a run of each model that it names.

    Args:
        grader: grader on the database of the set.
        request: set and file.
        make_progress: function that returns the progress of a number of gradings.
        notify: function that receives messages.

    Raises:
        InputError: the file cannot be read or has no row for the set, tasks have changed, or the set has none.
        MachineError: no engine answers.
    """
    store, bench_set = grader.store, request.bench_set
    ungraded = _list_ungraded(store, bench_set, skip=request.changed == SKIP)
    left_out = {subject.name for subject in ungraded}
    records = store.get_many(Task, [subject.id for subject in bench_set.subjects if subject.name not in left_out])
    tasks = sorted(records.values(), key=lambda task: task.name)
    result = ScoredFile(submitted=read_submissions(request.path, tasks, ungraded))
    if not result.submitted.has_rows:
        raise InputError(f"{request.path} has no prediction")
    submitted = [row for row in result.submitted.predictions if row.submission.content]
    scores = grade_predictions(grader, submitted, result.failures, make_progress, notify)
    artifacts = require_writable_store(grader.settings.storage)
    for model, rows in sorted(result.submitted.rows.items()):
        rollouts = []
        for task in tasks:
            row = rows.get(task.name)
            score = scores.get(row.submission.key) if row and row.submission.content else make_empty_score(task)
            if score is not None:
                rollouts.append(_make_rollout(artifacts, task, model, row, score))
        run = _make_run(bench_set, model, rollouts, left_out, store.clock())
        store.add(*rollouts, run)
        result.runs.append(run)
        result.missing[model] = len(tasks) - len(rows)
    return result


def _list_ungraded(store: Store, bench_set: BenchSet, *, skip: bool) -> list[UngradedSubject]:
    """Return the subjects of a set that take no predictions: its scenarios, and tasks that have changed.

    Raises:
        InputError: tasks have changed and are not to be skipped, or none is left.
    """
    scenarios = [subject for subject in bench_set.subjects if subject.kind == SCENARIO]
    tasks = tuple(subject for subject in bench_set.subjects if subject.kind != SCENARIO)
    if not tasks:
        raise InputError(
            f"{bench_set.name} has scenarios alone, which take no predictions", advice="mergemill bench run plays them"
        )
    changed = check_subjects(store, bench_set.model_copy(update={"subjects": tasks}), skip=skip)
    return [
        *(UngradedSubject(name=subject.name, id=subject.id, kind=subject.kind) for subject in scenarios),
        *(
            UngradedSubject(
                name=subject.name,
                id=subject.id,
                kind=subject.kind,
                form=FORMS.get(subject.kind, ""),
                problem=changed[subject.name],
            )
            for subject in tasks
            if subject.name in changed
        ),
    ]


def grade_predictions(
    grader: TaskGrader,
    predictions: Sequence[Prediction],
    failures: Counter[int],
    make_progress: Callable[[int], ScoreProgress],
    notify: Callable[[str], None],
) -> dict[tuple[str, str], Score]:
    """Return task and submission -> score, of those that have any.

    Args:
        grader: grader on the database of the tasks; submissions that it has graded before are not graded again.
        predictions: rows with the submissions; equal submissions to a task are graded once.
        failures: exit code -> submissions without a score, to which those are added that failed.
        make_progress: function that returns the progress of a number of gradings.
        notify: function that receives messages.

    Raises:
        MachineError: no engine answers.
    """
    rows = {row.submission.key: row for row in predictions}
    scores = {key: score for key, row in rows.items() if (score := grader.find_score(row.submission))}
    missing = [row for key, row in rows.items() if key not in scores]
    if with_image := next((row for row in missing if row.submission.task.image), None):
        grader.open_services(with_image.submission.task)
    in_row = 0
    with make_progress(len(missing)) as progress:
        for graded in PredictionRun(grader, notify).iterate_scores(missing):
            progress.add(graded)
            in_row = 0 if graded.score.value is not None else in_row + 1
            if graded.score.value is None:
                failures[_report_failure(graded, notify)] += 1
            else:
                scores[graded.prediction.submission.key] = graded.score
            if in_row >= grader.settings.cluster.workers + MAX_FAILURES_IN_ROW:
                break
    return scores


def _report_failure(graded: PredictionScore, notify: Callable[[str], None]) -> int:
    """Report why a row has no score, and return the exit code that stands for it."""
    notify(f"{graded.prediction.place}, {graded.prediction.instance}: {graded.score.infrastructure_error}")
    if graded.error is None:
        return Transient.exit_code
    return graded.error.exit_code if isinstance(graded.error, MergemillError) else MergemillError.exit_code


def make_empty_score(task: Task) -> Score:
    """Return the score of an empty submission, which earns 0 by the certificate of each task."""
    return Score(
        task=task.name,
        value=0.0,
        resolved=False,
        f2p_rate=0.0,
        p2p_rate=0.0,
        explanation="nothing was submitted",
        grader=compute_grader_version(),
    )


def _make_rollout(artifacts: Artifacts, task: Task, model: str, row: Prediction | None, score: Score) -> Rollout:
    """Return the rollout of a submission; its identity is the submission, and the grader that scored it."""
    content = row.submission.content if row else b""
    origin = f"{PREDICTIONS} {hashlib.sha256(content).hexdigest()} {score.grader}"
    if score.parts.get(VOID_PART):
        origin += " void"  # a model may decide them later, in another rollout
    return Rollout(
        parent=task.id,
        name=task.name,
        plan=hashlib.sha256(f"{task.id} {model} {origin}".encode()).hexdigest(),  # of no rollout that we plan
        scaffold=PREDICTIONS,
        scaffold_version=VERSION,
        model=model,
        attempt=1,
        origin=origin,
        environment=task.environment,
        status=RolloutStatus.DONE,
        submission=artifacts.put(content) if content else None,
        score=score,
        value=score.value,
        resolved=score.resolved,
    )


def _make_run(
    bench_set: BenchSet, model: str, rollouts: Sequence[Rollout], left_out: Iterable[str], at: str
) -> BenchRun:
    return BenchRun(
        parent=bench_set.id,
        name=bench_set.name,
        scaffold=PREDICTIONS,
        scaffold_version=VERSION,
        model=model,
        runs=1,
        left_out=tuple(sorted(left_out)),
        rollouts=tuple(sorted(rollout.id for rollout in rollouts)),
        graders=list_graders(rollouts),
        at=at,
    )
