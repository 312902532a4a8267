"""Reward of submitted tests: they detect the fault, pass after the fix, and detect other faults as well.

The value is 0 unless all of these hold (`_check_gates`):

- the patch applies and changes only tests, neither configuration of the runner nor sources;
- at least one test fails before the fix in both runs and passes after it; a file that cannot be collected before the
  fix does not count;
- all new tests pass after the fix in both runs, and no PASS_TO_PASS test of the files is lost;
- no test fails on a variant of the fixed tree with the same behaviour;
- rewritten forms of the fault are detected as well: tests check behaviour, not source text, git history or dates;
- at least one mutant is detected that is more than an omitted part of the fix, if there are any.

Then it is the average of 1 (for the fault), the share of mutants detected, and the coverage of
`oracle.uncovered_spans` by the submitted files where it can be measured. `resolved` requires the value 1, so everything
that the change's own tests detect and cover is detected and covered. Only new tests and those that detect the fault
count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from backends.services import Services
from evaluation.submitted_tests.patch import SubmittedPatch, find_violation, read_submitted_patch
from evaluation.submitted_tests.runner import (
    NotScoredError,
    SubmittedTestsRunner,
    TargetChange,
    find_false_alarm,
    is_detected,
)
from guest.scoring.submitted_tests import (
    OMITTED_HUNK,
    REWRITTEN_FAULT,
    SubmittedTestsResult,
    compute_line_share,
    compute_quality,
)
from taskdb.records import Score, Task
from taskdb.records.oracles import CodeEdit, TestWritingOracle


def grade(task: Task, services: Services, submission: bytes, *, is_brief: bool = False) -> Score:
    """Return the score of a patch of tests; empty is the no-op.

    `parts`: `detects` and `holds` (0 or 1); if both are 1 also `false_alarms` and `faults_missed` (counts); if these
    are 0 also `mutants_killed` and, where it can be measured, `covered` (shares).

    Args:
        task: a test-writing task.
        services: sandbox and artifacts.
        submission: patch of tests.
        is_brief: whether only the runs before and after the fix are made, repeated as ever: for a repetition of a
            grading that had all of them. The value is then 1 where the tests detect the fault and hold.

    Raises:
        Transient: engine, disk or network failed.
    """
    oracle = task.oracle
    if oracle is None or oracle.form != "test-writing":
        raise LookupError(f"{task.name} is no test-writing task")
    try:
        grader = _TestWritingGrader(
            task=task, services=services, oracle=oracle, submission=submission, is_brief=is_brief
        )
        return grader.score()
    except NotScoredError as error:
        return Score(
            task=task.name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=str(error)
        )


def load_gold_tests(task: Task, services: Services) -> bytes:
    """Return the submission that must earn 1: the change's own tests."""
    return services.artifacts.get(task.test_patch)


def build_subject(task: Task, services: Services) -> TargetChange:
    """Return the change for which the tests of a task are written."""
    pass_to_pass = frozenset(task.PASS_TO_PASS)
    return TargetChange(
        services=services,
        image=task.image,
        plan=task.require_plan(),
        language=task.language,
        gold_patch=services.artifacts.get(task.gold_patch),
        pass_to_pass=pass_to_pass,
        listed_tests=pass_to_pass | {test for test, _ in task.FAIL_TO_PASS},
        script=services.artifacts.get_text(task.require_script()),
    )


@dataclass(kw_only=True)
class _TestWritingGrader:
    """Grades a submission gate by gate."""

    task: Task
    services: Services
    oracle: TestWritingOracle
    submission: bytes
    is_brief: bool
    parts: dict[str, float] = field(default_factory=dict)

    def score(self) -> Score:
        submitted = self._read_submission()
        if isinstance(submitted, str):
            return self._score_zero(submitted)
        if violation := find_violation(submitted.files):
            return self._score_zero(violation, tampering=(violation,) if submitted.files else ())
        runner = SubmittedTestsRunner(target=build_subject(self.task, self.services), submitted=submitted)
        result = runner.evaluate()
        self.parts = {"detects": float(bool(result.detecting_tests)), "holds": float(result.is_valid)}
        failure = result.find_failure() or (None if self.is_brief else self._check_gates(runner, result))
        if failure:
            return self._score_zero(failure, tampering=(*result.tampering, *_describe_lost_tests(result)))
        if self.is_brief:
            return self._score_passed(1.0, f"{len(result.detecting_tests)} tests detect the fault")
        return self._score_quality(runner, result)

    def _read_submission(self) -> SubmittedPatch | str:
        """Return the submission, or the reason it cannot be read."""
        if not self.submission.strip():
            return "the patch is empty"
        with self.services.sandbox.open_pool(
            self.task.image, limits=self.services.test_limits(self.task.language)
        ) as pool:
            result = read_submitted_patch(pool, self.task.require_plan().workdir, self.submission)
        return result or "the patch does not apply"

    def _check_gates(self, runner: SubmittedTestsRunner, result: SubmittedTestsResult) -> str | None:
        """Return the reason that valid tests earn 0 all the same."""
        faults = [edit for edit in self.oracle.mutants if edit.operator == REWRITTEN_FAULT]
        edits = [*self.oracle.variants, *faults]
        results = runner.run_on_edits([self._load_patch(edit) for edit in edits]) if edits else []
        pairs = list(zip(edits, results, strict=True))
        false_alarms = [
            (edit, test)
            for edit, outcome in pairs
            if edit not in faults and (test := find_false_alarm(outcome, result.supporting_tests))
        ]
        missed = [
            edit for edit, outcome in pairs if edit in faults and not is_detected(outcome, result.supporting_tests)
        ]
        self.parts |= {"false_alarms": float(len(false_alarms)), "faults_missed": float(len(missed))}
        if false_alarms:
            edit, test = false_alarms[0]
            return f"false alarm: {test} fails although the behaviour is the same ({edit.operator}, {edit.path})"
        return "the tests do not detect a rewritten form of the fault" if missed else None

    def _score_quality(self, runner: SubmittedTestsRunner, result: SubmittedTestsResult) -> Score:
        """Return the score of tests that passed all gates but the last."""
        mutants = [edit for edit in self.oracle.mutants if edit.operator != REWRITTEN_FAULT]
        spans = self.oracle.uncovered_spans
        results = runner.run_on_edits([self._load_patch(edit) for edit in mutants], short=True)
        killed = [
            edit
            for edit, outcome in zip(mutants, results, strict=True)
            if is_detected(outcome, result.supporting_tests)
        ]
        if mutants:
            self.parts["mutants_killed"] = len(killed) / len(mutants)
        if (own_mutants := _exclude_left_out(mutants)) and not _exclude_left_out(killed):
            return self._score_zero(f"none of {len(own_mutants)} mutants of the fix is detected")
        covered = runner.run_on_edits([b""], collect_lines=True)[0].covered_lines if spans else None
        if covered is not None:
            self.parts["covered"] = compute_line_share(
                ((span.path, span.first_line, span.last_line) for span in spans), covered
            )
        return self._score_passed(compute_quality(self.parts), self._explain(result, mutants, killed))

    def _score_passed(self, value: float, explanation: str) -> Score:
        return Score(
            task=self.task.name,
            value=value,
            resolved=value == 1.0,
            f2p_rate=1.0,
            p2p_rate=1.0,
            parts=self.parts,
            explanation=explanation,
        )

    def _explain(self, result: SubmittedTestsResult, mutants: Sequence[CodeEdit], killed: Sequence[CodeEdit]) -> str:
        tests = len(result.detecting_tests)
        text = f"{tests} tests detect the fault, {len(killed)} of {len(mutants)} mutants are detected"
        undetected = next((edit for edit in mutants if edit not in killed), None)
        return f"{text}; not {undetected.detail} ({undetected.path}:{undetected.line})" if undetected else text

    def _score_zero(self, reason: str, tampering: tuple[str, ...] = ()) -> Score:
        return Score(
            task=self.task.name,
            value=0.0,
            resolved=False,
            f2p_rate=self.parts.get("detects", 0.0),
            p2p_rate=self.parts.get("holds", 0.0),
            tampering=tampering,
            explanation=reason,
            parts=self.parts,
        )

    def _load_patch(self, edit: CodeEdit) -> bytes:
        return self.services.artifacts.get(edit.patch)


def _exclude_left_out(mutants: Sequence[CodeEdit]) -> list[CodeEdit]:
    """Return the mutants that are more than an omitted part of the fix."""
    return [edit for edit in mutants if edit.operator != OMITTED_HUNK]


def _describe_lost_tests(result: SubmittedTestsResult) -> tuple[str, ...]:
    return (f"{len(result.lost_tests)} existing tests are missing or fail",) if result.lost_tests else ()
