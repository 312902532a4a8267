"""How true a simulator is: submissions to certified tasks are graded really, and their scores predicted by a model.

Each submission becomes a record (`taskdb.records.simulator_measurements`); a submission that has it is not measured
again, so an interrupted run goes on with the same command. Answers of the model are cached in the store, as those of
all simulated gradings are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import verifiers
from backends.git import GitError, list_patch_paths
from backends.index import ScratchIndex
from backends.llm.parallel import ParallelCalls
from core.errors import InputError, MergemillError, Transient, UsageError
from evaluation.edits.drafts import EditDraft, draft_line_mutants, draft_omissions
from evaluation.edits.fixed_files import FixedFile, read_fixed_files
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.run import run_tests
from evaluation.simulation.simulated_run import PROMPT, SimulationError
from mergemill.execution.services import make_services
from mergemill.grading.grading import Submission, TaskGrader
from taskdb.queries import tasks as queries
from taskdb.queries.simulator_agreement import (
    ErrorShare,
    SimulatorAgreement,
    compute_agreement,
    list_simulators,
    load_measurements,
    load_valued_rollouts,
)
from taskdb.records import Score, Task, TestId
from taskdb.records.simulator_measurements import PredictionCounts, SimulatorMeasurement, SubmissionKind
from taskdb.store import Store
from verifiers.rewards import REWARDS, TESTS
from verifiers.rewards.simulated import predict_report

if TYPE_CHECKING:
    from backends.services import Services
    from core.config import Settings
    from mergemill.execution.reporter import Reporter
    from taskdb.queries.task_filters import TaskFilters


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """Selection that is measured. `per_kind`: omitted hunks, bugs and rollouts of each task, at most."""

    filters: TaskFilters
    kinds: tuple[SubmissionKind, ...] = tuple(SubmissionKind)
    per_kind: int = 2
    samples: int = 3


@dataclass(frozen=True, kw_only=True)
class MeasuredSubmission:
    """A submission, and the real score where any."""

    kind: SubmissionKind
    submission: Submission
    detail: str = ""
    score: Score | None = None


def measure_simulator(request: MeasureRequest, settings: Settings, reporter: Reporter) -> tuple[dict[str, Any], int]:
    """Measure the simulator of the settings, store the results; return the summary and the exit code.

    Raises:
        InputError: no task is selected that has both gradings, or the database is read-only.
        UsageError: no model is set.
        MachineError: a submission must be graded, and no engine answers.
    """
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        return SimulatorMeasuring(store, settings, request, reporter).run()


class SimulatorMeasuring:
    """A run of `measure_simulator`."""

    def __init__(self, store: Store, settings: Settings, request: MeasureRequest, reporter: Reporter) -> None:
        self._store, self._settings, self._request, self._reporter = store, settings, request, reporter
        self._services = make_services(settings, engine=False)
        if self._services.model is None:
            raise UsageError("a simulator is needed", advice="set --llm URL and --model NAME")
        self._model = self._services.model
        self._grader = TaskGrader(store, settings)

    def run(self) -> tuple[dict[str, Any], int]:
        """Return the summary and the exit code."""
        tasks = self._select_tasks()
        known = {
            (measurement.parent, measurement.submission)
            for measurement in load_measurements(self._store, self._model.name)
            if (measurement.prompt, measurement.samples) == (PROMPT, self._request.samples)
        }
        listed = [submission for task in tasks for submission in self._collect(task)]
        left = [submission for submission in listed if submission.submission.key not in known]
        problems: Counter[str] = Counter()
        codes: list[int] = []
        with self._reporter.open_progress("submission", len(left)) as progress:

            def report(submission: MeasuredSubmission, outcome: SimulatorMeasurement | MergemillError) -> None:
                progress.advance()
                if isinstance(outcome, MergemillError):
                    problems[outcome.format_line()] += 1
                    codes.append(outcome.exit_code)
                    self._reporter.event(
                        {
                            "event": "problem",
                            "task": submission.submission.task.name,
                            "kind": submission.kind,
                            "detail": str(outcome),
                        }
                    )
                    return
                # Stored at once, so that the same command continues from here after a stop.
                self._store.add(outcome)
                self._reporter.event(describe_measurement(outcome))

            calls = ParallelCalls(
                work=self._measure, workers=self._settings.cluster.workers, report=report, stop=self._stop
            )
            outcomes = calls.run(left)
        for line, number in problems.most_common(3):
            self._reporter.message(f"{number} submissions not measured: {line}; the same command continues")
        measured = load_measurements(self._store, self._model.name)
        summary = {
            "event": "summary",
            "environment": "simulated",
            "simulator": self._model.name,
            "prompt": PROMPT,
            "planned": len(listed),
            "earlier": len(listed) - len(left),
            "new": sum(isinstance(outcome, SimulatorMeasurement) for outcome in outcomes),
            "problems": problems.total(),
            **describe_agreement(measured, self._settings.measurement.max_false_pass),
        }
        return summary, codes[0] if codes else 0

    def _select_tasks(self) -> list[Task]:
        """Return the selected tasks that lists of tests decide in an environment.

        Raises:
            InputError: there is none.
        """
        rows = queries.iter_tasks(self._store, self._request.filters)
        tasks = [task for task, _, _ in rows if task.image and verifiers.select_reward(task) is REWARDS[TESTS]]
        if not tasks:
            raise InputError(
                "no certified task with lists of tests is selected", advice="`mergemill tasks list` shows the tasks"
            )
        return tasks

    def _collect(self, task: Task) -> list[MeasuredSubmission]:
        """Return the submissions to a task, each content once."""
        submissions: dict[str, MeasuredSubmission] = {}
        for kind in self._request.kinds:
            for submission in COLLECTORS[kind](task, self._services, self._store, self._request.per_kind):
                submissions.setdefault(submission.submission.sha256, submission)
        return list(submissions.values())

    def _measure(self, submission: MeasuredSubmission) -> SimulatorMeasurement:
        """Return the measurement of a submission.

        Raises:
            MergemillError: it could not be graded, or the endpoint failed.
        """
        task, content = submission.submission.task, submission.submission.content
        score = submission.score or self._grader.find_score(submission.submission)
        is_fresh = score is None
        if score is None:
            score = self._grader.grade_persistently(submission.submission)
        if score.value is None:
            raise Transient(f"{task.name}: {score.infrastructure_error or 'there is no score'}")
        predictions = [self._predict(task, content, sample) for sample in range(1, self._request.samples + 1)]
        observed = find_outcomes(task, score)
        if is_fresh and len(observed) < len(list_tests(task)):
            observed = self._observe(task, content)
        first = predictions[0]
        return SimulatorMeasurement(
            parent=task.id,
            name=task.name,
            simulator=self._model.name,
            prompt=PROMPT,
            kind=submission.kind,
            submission=submission.submission.sha256,
            samples=self._request.samples,
            grader=score.grader,
            detail=submission.detail,
            resolved=score.resolved,
            predicted=tuple(None if outcome is None else all(outcome.values()) for outcome in predictions),
            tests=PredictionCounts() if first is None else count_tests(list_tests(task), observed, first),
            at=self._services.clock(),
        )

    def _predict(self, task: Task, content: bytes, sample: int) -> dict[TestId, bool] | None:
        """Return whether the simulator lets each test pass; None without a usable answer."""
        try:
            report = predict_report(task, self._services, content, sample=sample)
        except (SimulationError, GitError):
            return None
        return {test: report.has_passed(test) for test in list_tests(task)}

    def _observe(self, task: Task, content: bytes) -> dict[TestId, bool]:
        """Return which tests pass in a run of their own, for a score that has only their share."""
        services = self._grader.open_services(task)
        script = services.artifacts.get_text(task.require_script())
        with services.sandbox.open_pool(task.image, limits=services.test_limits(task.language)) as pool:
            result = run_tests(pool, script, workdir=task.require_plan().workdir, patch=content, last=True)
        if result.infrastructure_error:
            return {}
        report = result.report or EMPTY_REPORT
        return {test: report.has_passed(test) for test in list_tests(task)}

    def _stop(self) -> None:
        self._grader.stop()
        self._model.stop()


# ---------------------------------------------------------------------------------------------------- submissions


def collect_gold(task: Task, services: Services, store: Store, limit: int) -> Iterator[MeasuredSubmission]:
    """Yield the gold patch."""
    del store, limit
    gold = services.artifacts.get(task.gold_patch)
    yield MeasuredSubmission(kind=SubmissionKind.GOLD, submission=Submission(task=task, content=gold))


def collect_none(task: Task, services: Services, store: Store, limit: int) -> Iterator[MeasuredSubmission]:
    """Yield the empty patch."""
    del services, store, limit
    yield MeasuredSubmission(kind=SubmissionKind.NONE, submission=Submission(task=task, content=b""))


def collect_hunks(task: Task, services: Services, store: Store, limit: int) -> Iterator[MeasuredSubmission]:
    """Yield the gold patch without any of its hunks, the longest first; nothing where it has only one."""
    del store
    drafts = sorted(draft_omissions(_read_files(task, services)), key=lambda draft: draft.line - draft.last_line)
    yield from _edit_gold(task, services, SubmissionKind.HUNK, drafts[:limit])


def collect_bugs(task: Task, services: Services, store: Store, limit: int) -> Iterator[MeasuredSubmission]:
    """Yield the gold patch with a bug on any of its lines."""
    del store
    drafts = draft_line_mutants(_read_files(task, services), limit)
    yield from _edit_gold(task, services, SubmissionKind.BUG, drafts)


def collect_rollouts(task: Task, services: Services, store: Store, limit: int) -> Iterator[MeasuredSubmission]:
    """Yield the submissions that agents handed in, with the scores that it got."""
    for rollout in load_valued_rollouts(store, task.id, limit):
        yield MeasuredSubmission(
            kind=SubmissionKind.ROLLOUT,
            submission=Submission(task=task, content=services.artifacts.get(rollout.submission or "")),
            detail=rollout.id,
            score=rollout.score,
        )


Collector = Callable[["Task", "Services", Store, int], Iterator[MeasuredSubmission]]
COLLECTORS: Mapping[SubmissionKind, Collector] = {
    SubmissionKind.GOLD: collect_gold,
    SubmissionKind.NONE: collect_none,
    SubmissionKind.HUNK: collect_hunks,
    SubmissionKind.BUG: collect_bugs,
    SubmissionKind.ROLLOUT: collect_rollouts,
}
"""Kind -> the function that yields the submissions of a task, at most so many of it."""


def _read_files(task: Task, services: Services) -> list[FixedFile]:
    gold = services.artifacts.get(task.gold_patch)
    repository = services.clones.open_tree(task.source, task.repo, task.base_commit)
    with ScratchIndex(repository, task.base_commit) as index:
        return read_fixed_files(index, list_patch_paths(gold), gold)


def _edit_gold(
    task: Task, services: Services, kind: SubmissionKind, drafts: Sequence[EditDraft]
) -> Iterator[MeasuredSubmission]:
    """Yield the gold patch with each edit, as a patch to the base tree."""
    gold = services.artifacts.get(task.gold_patch)
    repository = services.clones.open_tree(task.source, task.repo, task.base_commit)
    for draft in drafts:
        with ScratchIndex(repository, task.base_commit) as index:
            index.apply(gold)
            index.apply(draft.patch)
            content = index.diff()
        detail = f"{draft.path}:{draft.line} {draft.operator}"
        yield MeasuredSubmission(kind=kind, submission=Submission(task=task, content=content), detail=detail)


# --------------------------------------------------------------------------------------------------------- tests


def list_tests(task: Task) -> list[TestId]:
    """Return all tests that decide a task."""
    return [*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS]


def find_outcomes(task: Task, score: Score) -> dict[TestId, bool]:
    """Return which tests really passed, as far as a score has it: of a list of which all or none did."""
    outcomes: dict[TestId, bool] = {}
    lists = (([test for test, _ in task.FAIL_TO_PASS], score.f2p_rate), (list(task.PASS_TO_PASS), score.p2p_rate))
    for tests, rate in lists:
        if rate in (0.0, 1.0):
            outcomes |= dict.fromkeys(tests, rate == 1.0)
    return outcomes


def count_tests(
    tests: Sequence[TestId], observed: Mapping[TestId, bool], predicted: Mapping[TestId, bool]
) -> PredictionCounts:
    """Return the tests by real and predicted outcome."""
    pairs = Counter((observed[test], predicted[test]) for test in tests if test in observed)
    return PredictionCounts(
        both_pass=pairs[True, True],
        false_pass=pairs[False, True],
        false_fail=pairs[True, False],
        both_fail=pairs[False, False],
        unknown=sum(test not in observed for test in tests),
    )


# ------------------------------------------------------------------------------------------------------ reporting


def describe_measurement(measurement: SimulatorMeasurement) -> dict[str, Any]:
    """Return the event of a measured submission."""
    return {
        "event": "measurement",
        "task": measurement.name,
        "kind": measurement.kind,
        "detail": measurement.detail,
        "resolved": measurement.resolved,
        "predicted": measurement.first,
        "probability": measurement.probability,
        "tests": measurement.tests.model_dump(),
    }


def describe_agreement(measured: Sequence[SimulatorMeasurement], limit: float) -> dict[str, Any]:
    """Return the shares of a simulator's measurements, by kind too, and whether its rewards may be trained on."""
    agreement = compute_agreement(measured)
    by_kind = {
        kind.value: compute_agreement(
            [measurement for measurement in measured if measurement.kind is kind]
        ).submissions.to_json()
        for kind in SubmissionKind
        if any(measurement.kind is kind for measurement in measured)
    }
    shares = {
        field.name: value.to_json()
        for field in fields(SimulatorAgreement)
        if isinstance(value := getattr(agreement, field.name), ErrorShare)
    }
    brier = None if agreement.brier is None else round(agreement.brier, 6)
    return {
        "measured": len(measured),
        **shares,
        "brier": brier,
        "unanswered": agreement.unanswered,
        "unknown_tests": agreement.unknown_tests,
        "kinds": by_kind,
        "max_false_pass": limit,
        "usable": agreement.false_pass.interval[1] <= limit,
    }


def require_measured_simulator(store: Store, simulator: str, limit: float) -> dict[str, Any]:
    """Return the shares of a simulator whose rewards may be trained on.

    Args:
        store: store with its measurements.
        simulator: name of the model.
        limit: largest share of wrong submissions that it may pay, as the upper bound of the interval.

    Raises:
        InputError: it was never measured, or its bound is above the limit.
    """
    measured = load_measurements(store, simulator)
    command = f"`mergemill simulate measure --model {simulator}`"
    if not measured:
        known = ", ".join(list_simulators(store)) or "none"
        raise InputError(
            f"the simulator {simulator} was never measured (measured: {known})",
            advice=f"run {command} on tasks with an environment",
        )
    described = describe_agreement(measured, limit)
    if not described["usable"]:
        share = described["false_pass"]
        raise InputError(
            f"the simulator {simulator} may pay up to {share['high']:.1%} of wrong submissions"
            f" ({share['n']} of {share['of']} were paid), and {limit:.1%} are allowed",
            advice=f"measure more with {command}, take another model, or raise --max-false-pass",
        )
    return described
