"""Search for removals that tests need: each is tried in containers of the base tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from backends.git import GitRepository
from derivers.injected import search as bugs
from derivers.injected.patches import build_injection_patches
from derivers.rebuild.removals import Removal
from derivers.search_progress import SearchProgress
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.run import run_tests
from taskdb.records import TestId


class Reason(StrEnum):
    """Why an environment gives no removal, or a removal was rejected; ordered by the progress made until then."""

    ENOUGH_TASKS = "enough-tasks"
    NO_PASSING_TESTS = "no-passing-tests"
    NO_REMOVABLE_CODE = "no-removable-code"
    """No source file that tests execute has a function that is not trivial, in a language with a grammar."""
    NO_FURTHER_CODE = "no-further-code"
    """Every removal that is possible is a task."""
    OUT_OF_BUDGET = "out-of-budget"
    NOTHING_FAILS = "nothing-fails"
    """No test needs the removed code."""
    BUILD_BREAKS = "build-breaks"
    """Tests are missing from the report, or the runner writes none."""
    TIMES_OUT = "times-out"
    ALL_TESTS_FAIL = "all-tests-fail"
    """All, or more than `derivers.injected.search.MAX_FAILING_TESTS`."""
    TESTS_IN_SOURCE = "tests-in-source"
    """The failing tests are in files that cannot be removed from the agent's tree."""
    SAME_TESTS_FAIL = "same-tests-fail"
    """Another task of the environment has the same FAIL_TO_PASS tests."""
    COPY_IN_TREE = "copy-in-tree"
    """Another file of the agent's tree has most of the removed code."""
    NO_IMAGE = "no-image"
    NOT_STABLE = "not-stable"
    """In the task's own image no test fails in every run without the code and passes in every run with it."""
    FURTHER_TESTS_FAIL = "further-tests-fail"
    """In the task's own image tests fail without the code in files that the agent sees."""
    STATEMENT_LEAKS = "statement-leaks"


def convert_reason(reason: bugs.Reason) -> Reason:
    """Return the reason of a removal for that of a bug; a reason that bugs alone have is an unstable result."""
    if reason is bugs.Reason.NO_MUTANT_DETECTED:
        return Reason.NOTHING_FAILS
    return next((own for own in Reason if own.value == reason.value), Reason.NOT_STABLE)


@dataclass(frozen=True, kw_only=True)
class DetectedRemoval:
    """A removal with which tests fail."""

    removal: Removal
    failing_tests: tuple[TestId, ...]
    report: EvaluationReport
    """Report of the run in which they failed, of all tests that are run."""


@dataclass(kw_only=True)
class RemovalSearch:
    """Evaluation of removals in containers of the base tree."""

    base: bugs.BugSearch
    """Pool, script and time budget."""
    repository: GitRepository
    passing: frozenset[TestId]
    """Tests that pass in the base tree."""
    tally: Counter[Reason] = field(default_factory=Counter)
    """Rejected removals by reason."""
    tried: list[str] = field(default_factory=list)
    """Keys of the removals that were tried, also in earlier steps of the search."""

    def continue_from(self, progress: SearchProgress) -> None:
        """Continue a search after its earlier steps."""
        self.tried = list(progress.tried)
        self.tally.update({Reason(reason): number for reason, number in progress.tally.items()})
        self.base.started -= progress.seconds

    def detect(
        self, removals: Iterable[Removal], limit: int, known_patches: Collection[bytes]
    ) -> Iterator[DetectedRemoval]:
        """Yield the removals with which some tests fail.

        Args:
            removals: removals to try, in order.
            limit: number of removals that are tried at most in all steps.
            known_patches: gold patches of earlier tasks, whose removals are left out.

        Raises:
            Transient: the engine failed.
        """
        plan = self.base.lineage.require_environment().plan
        tried = frozenset(self.tried)
        for removal in removals:
            if make_key(removal) in tried or (known_patches and self._restore(removal) in known_patches):
                continue
            if len(self.tried) >= limit:
                return
            if self.base.is_out_of_time():
                self.tally[Reason.OUT_OF_BUDGET] += 1
                return
            self.tried.append(make_key(removal))
            result = run_tests(self.base.pool, self.base.script, workdir=plan.workdir, patch=removal.patch)
            failing = bugs.classify_run(result, self.passing, self.base.test_files - {removal.path})
            if isinstance(failing, bugs.Reason):
                self.tally[convert_reason(failing)] += 1
            else:
                yield DetectedRemoval(removal=removal, failing_tests=failing, report=result.report or EMPTY_REPORT)

    def _restore(self, removal: Removal) -> bytes:
        """Return the gold patch of a removal, which does not depend on the tests that are hidden."""
        commit = self.base.lineage.candidate.base_commit
        return build_injection_patches(self.repository, commit, [removal.patch], []).gold_patch

    def explain_rejection(self) -> tuple[Reason, str]:
        """Return the reason of the removal that made most progress, and the counts of all reasons."""
        counts = ", ".join(f"{reason} {number}" for reason, number in self.tally.most_common())
        if not counts:
            return Reason.NO_FURTHER_CODE, "every function that can be removed is a task"
        furthest = max(self.tally, key=list(Reason).index)
        return furthest, f"{sum(self.tally.values())} removals gave no task: {counts}"


def make_key(removal: Removal) -> str:
    """Return the key of a removal in the base tree."""
    return f"{removal.path}:{removal.level}:{removal.name}"
