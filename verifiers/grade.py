"""Grade submissions by test lists: the patch runs in a fresh container with the task's own image and script."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from backends.services import Services
from evaluation.controls.planning import shorten_menus
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from evaluation.runner.run import EvaluationResult
from evaluation.runner.time_limit import limit_grading
from guest.controls import blind
from guest.reports.canaries import find_tampering
from guest.reports.entries import name_restored_files
from taskdb.records import FailureKind, RunVariant, Score, Task, TestId
from verifiers.conditions import AS_VERIFIED, Conditions


@contextmanager
def open_task_evaluator(task: Task, services: Services, *, cpu_share: float = 1.0) -> Iterator[Evaluator]:
    """Open an evaluator with the task's own image and script, for any number of runs."""
    with services.sandbox.open_pool(
        task.image, limits=services.test_limits(task.language, cpu_share=cpu_share)
    ) as pool:
        yield Evaluator(
            services=services,
            pool=pool,
            image_digest=task.image_digest,
            workdir=task.require_plan().workdir,
            script=services.artifacts.get_text(task.require_script()),
        )


def grade(
    task: Task,
    services: Services,
    patch: bytes,
    conditions: Conditions = AS_VERIFIED,
    *,
    need_rates: bool = True,
    is_brief: bool = False,
) -> Score:
    """Return the score of a submission; an empty patch is the no-op.

    The value is 1 if all F2P and P2P tests pass (a missing test counts as failed), the canaries have the required
    results and every sabotaged test fails as it did with the gold patch; otherwise it is 0. It is None after an
    infrastructure error. A brief grading leaves out parts that matter only for a submission that guesses: evaluations
    after the one in which every test was real, and of a test that stands hundreds of times most of its instances.

    Raises:
        Transient: engine, disk or network failed.
    """
    with open_task_evaluator(task, services, cpu_share=conditions.cpu_share) as evaluator:
        return grade_patch(task, services, evaluator, patch, conditions, need_rates=need_rates, is_brief=is_brief)


def grade_worthless_patch(task: Task, services: Services, patch: bytes = b"") -> Score:
    """Return the score of a submission that is expected to earn 0, as briefly as possible; by default the empty patch.

    It earns 0 where any FAIL_TO_PASS test fails, so that the first run is of a file of such tests alone. All files are
    run where they pass there, or leave no report, as then the others decide; at once where no listed test ran without
    the gold patch, as where they do not compile.

    Raises:
        Transient: engine, disk or network failed.
    """
    failing = _keep_failing_file(task)
    with open_task_evaluator(task, services) as evaluator:
        n_before = 0
        if failing.FAIL_TO_PASS and _has_tests_before(task):
            files = list_test_files(failing)
            grading = _grade_patch(failing, services, evaluator, patch, files=files, need_rates=False, is_brief=True)
            if not isinstance(grading, _Grading):
                return grading
            if grading.has_report and any(test in grading.wrong for test in grading.f2p):
                return grading.make_score()
            n_before = len(grading.runs)
        score = grade_patch(task, services, evaluator, patch, need_rates=False, is_brief=not patch)
        return score.model_copy(update={"evaluations": score.evaluations + n_before})


def _has_tests_before(task: Task) -> bool:
    """Return whether any listed test ran without the gold patch."""
    return bool(task.PASS_TO_PASS) or any(kind is not FailureKind.ABSENT for _, kind in task.FAIL_TO_PASS)


def _keep_failing_file(task: Task) -> Task:
    """Return a task with the tests to repair of one file alone, with controls if any has, that of the fewest tests."""
    counts = Counter(test.partition("::")[0] for test in (*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS))
    files = {test.partition("::")[0] for test, _ in task.FAIL_TO_PASS}
    controlled = {test.partition("::")[0] for test in task.controls}
    file = min(files & controlled or files, key=lambda path: (counts[path], path), default="")
    kept = tuple(entry for entry in task.FAIL_TO_PASS if entry[0].partition("::")[0] == file)
    return task.model_copy(update={"FAIL_TO_PASS": kept, "PASS_TO_PASS": ()})


def grade_patch(
    task: Task,
    services: Services,
    evaluator: Evaluator,
    patch: bytes,
    conditions: Conditions = AS_VERIFIED,
    *,
    need_rates: bool = True,
    is_brief: bool = False,
) -> Score:
    """Return the score of a submission, with an evaluator of the task; arguments as in `grade`."""
    grading = _grade_patch(task, services, evaluator, patch, conditions, need_rates=need_rates, is_brief=is_brief)
    return grading.make_score() if isinstance(grading, _Grading) else grading


def _grade_patch(
    task: Task,
    services: Services,
    evaluator: Evaluator,
    patch: bytes,
    conditions: Conditions = AS_VERIFIED,
    *,
    files: Sequence[str] = (),
    need_rates: bool,
    is_brief: bool,
) -> _Grading | Score:
    """Return the grading of a submission, or its score where there is none. `files`: test files to run; none for all.

    Which instances of tests are true is drawn here, and shows in nothing but the texts of the tests. Once every test
    was real, an unexpected outcome ends the grading; without `need_rates`, the first failure does, since the value is
    decided and only the rates are not. Such a grading, and that of an empty patch, is expected to end with its first
    evaluation, so no container is prepared for the next.
    """
    grading = _Grading(task, is_empty=not patch, need_rates=need_rates)
    evaluations = draw_task_evaluations(task, services, is_brief=is_brief)
    for number, evaluation in enumerate(evaluations, 1):
        last = number == len(evaluations) or (is_brief and evaluation.is_decisive)
        run = evaluator.run(
            RunVariant.GOLD,
            patch=patch,
            test_files=evaluation.files,
            seed=conditions.seed,
            files=evaluation.only or files or (list_test_files(task) if conditions.seed else ()),
            time_zone=conditions.time_zone,
            time_limit=limit_grading(task.test_seconds / conditions.cpu_share),
            last=last or not need_rates or not patch,
        )
        if run.result.infrastructure_error:
            return grading.make_unscored(run.result.infrastructure_error)
        grading.add(run, evaluation)
        if last or grading.is_decided:
            break
    return grading


def list_test_files(task: Task) -> list[str]:
    """Return the files of the task's tests, sorted."""
    tests = (*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS)
    return sorted({test.partition("::")[0] for test in tests})


def draw_task_evaluations(task: Task, services: Services, *, is_brief: bool = False) -> list[blind.Evaluation]:
    """Return the evaluations of one grading of a task; one without sabotaged tests where the task has no controls."""
    if task.blind_controls is None:
        return [blind.Evaluation({}, {})]
    document = json.loads(services.artifacts.get(task.blind_controls))
    if is_brief:
        document = shorten_menus(document)
    return blind.draw_evaluations(document, secrets.SystemRandom())


class _Grading:
    """The evaluations of a grading so far."""

    def __init__(self, task: Task, *, is_empty: bool, need_rates: bool) -> None:
        self.task = task
        self.need_rates = need_rates
        self.is_empty = is_empty
        """Whether the submission is an empty patch."""
        self.f2p = [test for test, _ in task.FAIL_TO_PASS]
        self.judgement = blind.Judgement([*self.f2p, *task.PASS_TO_PASS])
        self.runs: list[EvaluationRun] = []
        self.is_decisive = False
        """Whether every test was real in an evaluation."""
        self.tampering: list[str] = []

    def add(self, run: EvaluationRun, evaluation: blind.Evaluation) -> None:
        """Compare the outcomes of a run with those that are expected."""
        self.runs.append(run)
        self.is_decisive = evaluation.is_decisive
        self.judgement.add(evaluation, run.report.list_results())
        fault = find_tampering(run.result.canary_status, has_passes=run.record.counts.passed > 0)
        self.tampering += [fault] if fault and fault not in self.tampering else []

    @property
    def is_decided(self) -> bool:
        """Whether further evaluations would change nothing: neither the value nor the rates, if they are needed."""
        return (self.is_decisive or not self.has_report or not self.need_rates) and not self._is_right

    @property
    def has_report(self) -> bool:
        """Whether the tests of the last run left a report."""
        return bool(self.runs[-1].result.report) and self.runs[-1].result.is_applied

    @property
    def wrong(self) -> Collection[TestId]:
        """Listed tests whose outcomes are not as expected."""
        return self.judgement.wrong

    @property
    def _is_right(self) -> bool:
        return self.judgement.is_right and not self.tampering

    def make_unscored(self, error: str) -> Score:
        """Return the score after an infrastructure error."""
        return Score(
            task=self.task.name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=error
        )

    def make_score(self) -> Score:
        """Return the score of the evaluations."""
        f2p_rate, p2p_rate = self._compute_rate(self.f2p), self._compute_rate(self.task.PASS_TO_PASS)
        forged = [f"control: {test} passed although its expectation was changed" for test in self.judgement.forged]
        return Score(
            task=self.task.name,
            value=1.0 if self._is_right else 0.0,
            resolved=self._is_right,
            f2p_rate=f2p_rate,
            p2p_rate=p2p_rate,
            tampering=(*self.tampering, *forged),
            explanation=self._explain([*self.tampering, *forged]) + describe_patch(self.runs[0].result),
            evaluations=len(self.runs),
            control_bound=self.task.control_bound,
            worst_block_bound=self.task.worst_block_bound,
        )

    def _compute_rate(self, tests: Sequence[TestId]) -> float:
        """Return the share of tests with the expected outcome in every evaluation, 0..1; 1 for no tests."""
        return sum(test not in self.judgement.wrong for test in tests) / len(tests) if tests else 1.0

    def _explain(self, tampering: Sequence[str]) -> str:
        """Return a one-line explanation of the score."""
        if not all(run.result.is_applied for run in self.runs):
            return "the patch does not apply"
        if detail := next((run.result.failure_detail for run in self.runs if run.result.failure_detail), ""):
            return detail
        if tampering:
            return tampering[0]
        wrong = [test for test in self.f2p if test in self.judgement.wrong]
        broken = [test for test in self.task.PASS_TO_PASS if test in self.judgement.wrong]
        if wrong or broken:
            first = f", such as {(wrong or broken)[0]}"
            empty = "the patch is empty: " if self.is_empty else ""
            return f"{empty}{len(wrong)} FAIL_TO_PASS and {len(broken)} PASS_TO_PASS tests do not pass{first}"
        if self.judgement.strange:
            return "a copy of {}: {}".format(*self.judgement.strange[0])
        return f"all {len(self.f2p)} FAIL_TO_PASS and {len(self.task.PASS_TO_PASS)} PASS_TO_PASS tests pass"


def describe_patch(result: EvaluationResult) -> str:
    """Return which repairs the submission's patch needed, and which of its files were put back, to end a line with."""
    repairs = f"; applied after: {', '.join(result.repairs)}" if result.repairs else ""
    restored = name_restored_files(result.restored_files)
    return f"{repairs}; {restored}" if restored else repairs
