"""Construction of the oracle of test-writing tasks, from evaluations of the change's own tests.

The change's tests are run, in two parallel containers, on mutants of the gold tree (kept when they fail), on variants
(kept when they and all PASS_TO_PASS tests pass), and on the restored fault (kept when the same tests fail as before the
fix). The constants limit the runs: at most 2 * 2 + 1 before the first edit, then TRIED_MUTANTS + TRIED_FAULTS +
TRIED_VARIANTS, one more with all tests for each kept fault or variant, and two for coverage. No further edit of a sort
is run once as many are kept as a task has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from backends.git import GitRepository
from backends.index import ScratchIndex
from backends.services import Services
from derivers.base import KindRejection
from evaluation.edits.drafts import EditDraft, draft_faults, draft_mutants, draft_variants
from evaluation.edits.fixed_files import FixedFile, list_fix_spans, read_fixed_files
from evaluation.reports.coverage import CoveredLines
from evaluation.submitted_tests.patch import SubmittedPatch, find_violation, read_submitted_patch
from evaluation.submitted_tests.runner import (
    SubmittedTestsRunner,
    TargetChange,
    find_false_alarm,
    has_failure,
)
from guest.scoring.submitted_tests import SubmittedTestsResult
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import CodeEdit, LineSpan, TestWritingOracle

MAX_MUTANTS, TRIED_MUTANTS = 8, 14
MAX_VARIANTS, TRIED_VARIANTS = 3, 4
MAX_FAULTS, TRIED_FAULTS = 1, 2
"""Edits of each sort that a task keeps at most, and that are tried for it."""
MAX_WHOLE_RUN_SECONDS = 60.0
"""Where a run of all tests takes longer, only the change's own tests are run, and coverage is not measured."""

ResultT = TypeVar("ResultT")


class Reason(StrEnum):
    """Why a verified change gives no test-writing task."""

    NO_BEHAVIOURAL_FAILURE = "no-behavioural-failure"
    NOT_ONLY_TESTS = "not-only-tests"
    """The test patch contains more than tests (runner configuration, links), or does not apply alone."""
    TESTS_DO_NOT_HOLD = "tests-do-not-hold"
    """The change's test files, run alone, do not fail before the fix, or do not pass after it."""
    NO_MUTANT = "no-mutant"
    """No mutation operator applies to the lines of the fix."""
    NO_MUTANT_DETECTED = "no-mutant-detected"


@dataclass(kw_only=True)
class WritingOracleBuilder:
    """Builds the oracle of a change. Its methods raise the errors of `SubmittedTestsRunner`."""

    lineage: Lineage
    services: Services

    def build(self) -> TestWritingOracle | KindRejection:
        """Return the oracle, or why there is none."""
        submitted = self._read_own_tests()
        if isinstance(submitted, KindRejection):
            return submitted
        # Drafts come first: without any mutant, the runs of the tests would be in vain.
        drafts = draft_mutants(self._files, TRIED_MUTANTS)
        if not drafts:
            return KindRejection(Reason.NO_MUTANT, "no mutation operator applies to the lines of the fix")
        runner = SubmittedTestsRunner(target=self._target, submitted=submitted)
        own_result = runner.evaluate()
        if not own_result.detecting_tests or not own_result.is_valid or own_result.tampering:
            return KindRejection(Reason.TESTS_DO_NOT_HOLD, _explain_failure(own_result))
        # A mutant may never end, so these runs have a short limit.
        mutants = select_edits(
            drafts,
            MAX_MUTANTS,
            lambda patches: runner.run_on_edits(patches, short=True),
            lambda result: has_failure(result, own_result.supporting_tests),
        )
        if not mutants:
            return KindRejection(
                Reason.NO_MUTANT_DETECTED, f"the change's own tests pass with each of {len(drafts)} mutants"
            )
        faults, variants = self._select_faults(runner, own_result), self._select_variants(runner, own_result)
        spans = list_fix_spans(self._files)
        base_coverage, uncovered_spans = self._measure_coverage(runner, spans)
        return TestWritingOracle(
            mutants=tuple(self._store_edit(draft) for draft in [*faults, *mutants]),
            variants=tuple(self._store_edit(draft) for draft in variants),
            gold_spans=tuple(spans),
            base_coverage=base_coverage,
            uncovered_spans=tuple(uncovered_spans),
        )

    @cached_property
    def _repository(self) -> GitRepository:
        candidate = self.lineage.candidate
        return self.services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)

    @cached_property
    def _longest_run_seconds(self) -> float:
        """Seconds of the longest run of all tests of the task."""
        return max((run.test_seconds for run in self.lineage.require_verification().runs), default=0.0)

    @cached_property
    def _target(self) -> TargetChange:
        environment, verification = self.lineage.require_environment(), self.lineage.require_verification()
        artifacts = self.services.artifacts
        pass_to_pass = frozenset(verification.PASS_TO_PASS)
        return TargetChange(
            services=self.services,
            image=environment.image,
            plan=environment.plan,
            language=self.lineage.candidate.language,
            gold_patch=artifacts.get(self.lineage.gold_patch),
            pass_to_pass=pass_to_pass,
            listed_tests=pass_to_pass | {test for test, _ in verification.FAIL_TO_PASS},
            script=artifacts.get_text(verification.eval_script),
        )

    @cached_property
    def _files(self) -> list[FixedFile]:
        candidate = self.lineage.candidate
        with ScratchIndex(self._repository, candidate.base_commit) as index:
            return read_fixed_files(index, candidate.gold_files, self._target.gold_patch)

    def _read_own_tests(self) -> SubmittedPatch | KindRejection:
        """Return the change's tests, read like any submission."""
        patch = self.services.artifacts.get(self.lineage.tests.patch)
        environment = self.lineage.require_environment()
        with self.services.sandbox.open_pool(
            environment.image, limits=self.services.test_limits(environment.plan.language)
        ) as pool:
            submitted = read_submitted_patch(pool, environment.plan.workdir, patch)
        if submitted is None:
            return KindRejection(Reason.NOT_ONLY_TESTS, "the test patch does not apply alone")
        detail = find_violation(submitted.files)
        return KindRejection(Reason.NOT_ONLY_TESTS, detail) if detail else submitted

    # ----------------------------------------------------------------------------------------------------- edits

    def _select_faults(self, runner: SubmittedTestsRunner, own_result: SubmittedTestsResult) -> list[EditDraft]:
        """Return drafts of the restored fault with which the same tests fail as before the fix."""
        drafts = draft_faults(self._files, TRIED_FAULTS)
        matching = select_edits(
            drafts,
            MAX_FAULTS,
            runner.run_on_edits,
            lambda result: (
                all(has_failure(result, [test]) for test in own_result.detecting_tests)
                and find_false_alarm(result, own_result.supporting_tests - own_result.detecting_tests) is None
            ),
        )
        return self._filter_passing(runner, matching)

    def _select_variants(self, runner: SubmittedTestsRunner, own_result: SubmittedTestsResult) -> list[EditDraft]:
        """Return variants with which no test fails."""
        drafts = draft_variants(self._files, TRIED_VARIANTS)
        passing = select_edits(
            drafts,
            MAX_VARIANTS,
            runner.run_on_edits,
            lambda result: find_false_alarm(result, own_result.supporting_tests) is None,
        )
        return self._filter_passing(runner, passing)

    def _filter_passing(self, runner: SubmittedTestsRunner, drafts: Sequence[EditDraft]) -> list[EditDraft]:
        """Return the drafts with which all PASS_TO_PASS tests pass."""
        if self._longest_run_seconds > MAX_WHOLE_RUN_SECONDS or not drafts:
            return list(drafts)
        results = runner.run_task_script([draft.patch for draft in drafts])
        return [
            draft
            for draft, result in zip(drafts, results, strict=True)
            if find_false_alarm(result, self._target.pass_to_pass) is None
        ]

    def _store_edit(self, draft: EditDraft) -> CodeEdit:
        return CodeEdit(
            operator=draft.operator,
            path=draft.path,
            line=draft.line,
            detail=draft.detail,
            patch=self.services.artifacts.put(draft.patch),
        )

    # -------------------------------------------------------------------------------------------------- coverage

    def _measure_coverage(
        self, runner: SubmittedTestsRunner, spans: Sequence[LineSpan]
    ) -> tuple[float | None, list[LineSpan]]:
        """Return the base tests' share of the covered lines, and the lines that only the change's tests cover."""
        if self._longest_run_seconds > MAX_WHOLE_RUN_SECONDS:
            return None, []
        own = runner.run_on_edits([b""], collect_lines=True)[0].covered_lines
        base = self._measure_base_coverage(runner) if own is not None else None
        if own is None or base is None:
            return None, []
        lines = [(span.path, line) for span in spans for line in range(span.first_line, span.last_line + 1)]
        by_base = [(path, line) for path, line in lines if line in base.get(path, ())]
        by_new = [(path, line) for path, line in lines if (path, line) not in by_base and line in own.get(path, ())]
        reached = len(by_base) + len(by_new)
        return (len(by_base) / reached if reached else None), _join_lines(by_new)

    def _measure_base_coverage(self, runner: SubmittedTestsRunner) -> CoveredLines | None:
        """Return the lines of the gold tree that the base tree's tests cover, among the files that the task runs."""
        eval_files, files = self.lineage.require_verification().eval_files, list[str]()
        if eval_files:
            base_tree = {entry.path for entry in self._repository.ls_tree(self.lineage.candidate.base_commit)}
            files = [file for file in eval_files if file in base_tree]
            if not files:
                return {}
        return runner.run_original_tests(files, seconds=self._longest_run_seconds).covered_lines


def select_edits(
    drafts: Sequence[EditDraft],
    limit: int,
    run: Callable[[list[bytes]], list[ResultT]],
    is_kept: Callable[[ResultT], bool],
) -> list[EditDraft]:
    """Return the first edits, `limit` at most, whose run is as it must be.

    Args:
        drafts: edits, the best first.
        limit: number of edits that a task keeps.
        run: function that runs the tests with each of some edits.
        is_kept: whether the result of a run shows that its edit can be kept.
    """
    kept: list[EditDraft] = []
    tried = 0
    while len(kept) < limit and tried < len(drafts):
        batch = drafts[tried : tried + limit - len(kept)]  # as many as are lacking, which run in parallel
        results = run([draft.patch for draft in batch])
        kept += [draft for draft, result in zip(batch, results, strict=True) if is_kept(result)]
        tried += len(batch)
    return kept


def _join_lines(lines: Sequence[tuple[str, int]]) -> list[LineSpan]:
    """Return ordered lines as the fewest possible spans."""
    spans: list[LineSpan] = []
    for path, line in lines:
        last = spans[-1] if spans else None
        if last and last.path == path and last.last_line + 1 == line:
            spans[-1] = last.model_copy(update={"last_line": line})
        else:
            spans.append(LineSpan(path=path, first_line=line, last_line=line))
    return spans


def _explain_failure(own_result: SubmittedTestsResult) -> str:
    if own_result.tampering:
        return own_result.tampering[0]
    failures = [*own_result.failures, *own_result.lost_tests]
    return f"{failures[0]} does not pass after the fix" if failures else "no test of the change fails before the fix"
