"""Two changes of one repository as one harder task, at the base commit and in the image of the older one.

The gold patch is the older change with the newer one on top, the hidden tests likewise; the statement contains both
texts. The task is rejected unless each part is needed: with one part alone, tests of the other part fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath

from backends.git import GitError, GitRepository
from backends.sandbox.base import ContainerPool
from backends.services import Services
from derivers.base import KindRejection, build_task
from derivers.bugfix import derive_bugfix
from derivers.feature import derive_feature
from derivers.patch_merge import isolate_patch, stack_patches
from evaluation.controls.controls import build_controls
from evaluation.lists import OutcomeLists, make_lists
from evaluation.runner.evaluator import EvaluationRun, Evaluator, select_evaluator
from evaluation.script.render import extract_config_patch, render_plan_script
from languages.paths import is_test_file
from taskdb.lineage import Lineage
from taskdb.records import Kind, RunVariant, Task, TestId, Verification

MAX_COMMITS_APART = 20
"""Commits of the default branch between two changes that touch no common folder."""
REPEATS = 2
"""Test-only runs, and gold runs; certification adds three more."""

STATEMENT = """This task has two parts. Solve both; in the end, both must work.

# First task

{first}

# Second task

{second}
"""


class Reason(StrEnum):
    """Why two verified changes give no combined task."""

    TOO_FAR_APART = "too-far-apart"
    """They touch no common folder, and too many commits lie between them."""
    PART_WITHOUT_TASK = "part-without-task"
    """One of them alone is neither a bug fix nor a feature, for example because its statement was excluded."""
    DOES_NOT_APPLY = "does-not-apply"
    PART_NOT_NEEDED = "part-not-needed"
    FAILS_TOGETHER = "fails-together"
    OUT_OF_TIME = "out-of-time"


def derive_combined(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the task of a change together with an older one, `lineage.neighbours[0]`; nine evaluations at most.

    Raises:
        Transient: engine, disk or network failed.
    """
    older = lineage.neighbours[0]
    tree = services.clones.open(lineage.candidate.source, lineage.candidate.repo)
    if rejection := _check_distance(older, lineage, tree):
        return rejection
    statements = []
    for part in (older, lineage):
        statement = _read_statement(part, services)
        if isinstance(statement, KindRejection):
            return statement
        statements.append(statement)
    try:
        pair = ChangePair.from_lineages(older, lineage, services, tree)
    except GitError as error:
        detail = f"{lineage.candidate.name} on top of {older.candidate.name}: {error}"
        return KindRejection(Reason.DOES_NOT_APPLY, detail)
    with services.sandbox.open_pool(older.require_environment().image, limits=services.test_limits()) as pool:
        evaluation = PairEvaluation(pair=pair, services=services, pool=pool)
        if rejection := evaluation.find_rejection():
            return rejection
        return [_build_task(evaluation, STATEMENT.format(first=statements[0], second=statements[1]))]


def _check_distance(older: Lineage, newer: Lineage, tree: GitRepository) -> KindRejection | None:
    """Return a rejection of changes that touch no common folder of sources and lie many commits apart."""
    folders = [
        {str(PurePosixPath(path).parent) for path in part.candidate.gold_files} - {"."} for part in (older, newer)
    ]
    if folders[0] & folders[1] or set(older.candidate.gold_files) & set(newer.candidate.gold_files):
        return None
    span = f"{older.candidate.base_commit}..{newer.candidate.base_commit}"
    between = int(tree.run_git("rev-list", "--count", "--first-parent", span))
    if between <= MAX_COMMITS_APART:
        return None
    detail = f"{between} commits after {older.candidate.name}, and no common folder"
    return KindRejection(Reason.TOO_FAR_APART, detail)


def _read_statement(part: Lineage, services: Services) -> str | KindRejection:
    """Return the problem statement of the part's own task."""
    rejections = []
    for derive in (derive_bugfix, derive_feature):
        result = derive(part, services)
        if not isinstance(result, KindRejection):
            return result[0].problem_statement
        rejections.append(result)
    first = rejections[0] if len({rejection.reason for rejection in rejections}) == 1 else rejections[1]
    return KindRejection(Reason.PART_WITHOUT_TASK, f"{part.candidate.name}: {first.reason}: {first.detail}")


# ---------------------------------------------------------------------------------------------------------- patches


@dataclass(frozen=True, kw_only=True)
class ChangePair:
    """Two changes as patches to the base commit of the older one."""

    older: Lineage
    newer: Lineage
    tree: GitRepository
    gold_patch: bytes
    test_patch: bytes
    older_patch: bytes
    newer_patch: bytes | None
    """None where the newer change depends on files that the older one adds."""

    @classmethod
    def from_lineages(cls, older: Lineage, newer: Lineage, services: Services, tree: GitRepository) -> ChangePair:
        """Return the pair with its combined patches.

        Raises:
            GitError: the newer change does not apply on top of the older one.
        """
        base, get = older.candidate.base_commit, services.artifacts.get
        first, second = get(older.candidate.gold_patch), get(newer.candidate.gold_patch)
        tests = stack_patches(tree, base, get(older.candidate.test_patch), get(newer.candidate.test_patch))
        return cls(
            older=older,
            newer=newer,
            tree=tree,
            gold_patch=stack_patches(tree, base, first, second),
            test_patch=tests,
            older_patch=first,
            newer_patch=isolate_patch(tree, base, first, second),
        )

    @cached_property
    def test_files(self) -> list[str]:
        """Test files that either change touches."""
        touched = {*self.older.candidate.test_files, *self.newer.candidate.test_files}
        return sorted(path for path in touched if is_test_file(path, self.older.candidate.language))

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Test files that are run; empty for the whole suite."""
        older, newer = (part.require_verification().eval_files for part in (self.older, self.newer))
        return tuple(sorted({*older, *newer, *self.test_files})) if older else ()

    @cached_property
    def own_fail_to_pass(self) -> tuple[list[TestId], list[TestId]]:
        """FAIL_TO_PASS of the older and of the newer change, each verified alone."""
        return _list_fail_to_pass(self.older.require_verification()), _list_fail_to_pass(
            self.newer.require_verification()
        )


def _list_fail_to_pass(verification: Verification) -> list[TestId]:
    return [test for test, _ in verification.FAIL_TO_PASS]


# ------------------------------------------------------------------------------------------------------ evaluations


@dataclass(kw_only=True)
class PairEvaluation:
    """The evaluations of one pair."""

    pair: ChangePair
    services: Services
    pool: ContainerPool
    evaluator: Evaluator = field(init=False)
    """Runs the script of both changes in the image of the older one; set by the first gold run."""
    test_only_runs: list[EvaluationRun] = field(default_factory=list)
    gold_runs: list[EvaluationRun] = field(default_factory=list)

    def _build_evaluator(self, beside: Sequence[str]) -> Evaluator:
        environment, pair = self.pair.older.require_environment(), self.pair
        plan = environment.plan
        script = render_plan_script(
            plan,
            test_patch=pair.test_patch,
            files=pair.files,
            canaries_beside=beside,
            config_patch=extract_config_patch(pair.gold_patch),
        )
        return Evaluator(
            services=self.services,
            pool=self.pool,
            image_digest=environment.image_digest,
            workdir=plan.workdir,
            script=script,
        )

    @cached_property
    def lists(self) -> OutcomeLists:
        """FAIL_TO_PASS and PASS_TO_PASS by all runs."""
        return make_lists([run.report for run in self.test_only_runs], [run.report for run in self.gold_runs])

    def find_rejection(self) -> KindRejection | None:
        """Run the evaluations; return why the pair is rejected, None if it is a task."""
        return self._check_both_parts() or self._repeat_runs() or self._check_each_part_needed()

    def _check_both_parts(self) -> KindRejection | None:
        """Reject the pair unless the tests of both parts pass with both."""
        self.evaluator, first = select_evaluator(self._build_evaluator, self.pair.test_files, self.pair.gold_patch)
        self.gold_runs = [first]
        return _check_run(self.pair, first)

    def _repeat_runs(self) -> KindRejection | None:
        files: list[str] = []
        for seed in range(REPEATS):
            if seed:
                report = self.gold_runs[0].report
                files = sorted({*report.list_files(), *report.uncollected, *self.test_only_runs[0].report.list_files()})
                self.gold_runs.append(
                    self.evaluator.run(RunVariant.GOLD, seed=seed, patch=self.pair.gold_patch, files=files)
                )
            self.test_only_runs.append(self.evaluator.run(RunVariant.TEST_ONLY, seed=seed, files=files))
        runs = (*self.test_only_runs, *self.gold_runs)
        killed = next((run for run in runs if run.result.exec_result.killed_by), None)
        return _reject_unusable_run(killed) if killed is not None else None

    def _check_each_part_needed(self) -> KindRejection | None:
        """Reject the pair unless each part has tests that fail with the other part alone."""
        fail_to_pass = {test for test, _ in self.lists.fail_to_pass}
        for other, tests, part in (
            (self.pair.newer_patch, self.pair.own_fail_to_pass[0], self.pair.older),
            (self.pair.older_patch, self.pair.own_fail_to_pass[1], self.pair.newer),
        ):
            remaining = [test for test in tests if test in fail_to_pass]
            if not remaining:
                detail = f"no test of {part.candidate.name} fails without both and passes with them"
                return KindRejection(Reason.PART_NOT_NEEDED, detail)
            if other is None:
                continue
            run = self.evaluator.run(RunVariant.GOLD, patch=other)
            if run.result.exec_result.killed_by or not run.result.is_applied:
                return _reject_unusable_run(run)
            if all(run.report.has_passed(test) for test in remaining):
                detail = f"the tests of {part.candidate.name} pass with the other change alone"
                return KindRejection(Reason.PART_NOT_NEEDED, detail)
        return None


def _check_run(pair: ChangePair, run: EvaluationRun) -> KindRejection | None:
    """Return why a run with both parts rejects the pair: unusable, a failing test, or a part without tests."""
    result, report = run.result, run.report
    if result.exec_result.killed_by or result.infrastructure_error or not result.is_applied or result.report is None:
        return _reject_unusable_run(run)
    if lost := sorted(path for path in report.uncollected if path in pair.test_files):
        return KindRejection(Reason.FAILS_TOGETHER, f"{lost[0]} cannot be collected: {report.uncollected[lost[0]]}")
    failing = [
        test
        for test in (*pair.own_fail_to_pass[0], *pair.own_fail_to_pass[1])
        if test in report.outcomes and not report.has_passed(test)
    ]
    failing += [test for test in pair.older.require_verification().PASS_TO_PASS if report.has_failed(test)]
    if failing:
        detail = f"{len(failing)} tests fail with both parts, such as {failing[0]}"
        return KindRejection(Reason.FAILS_TOGETHER, detail)
    for part, tests in zip((pair.older, pair.newer), pair.own_fail_to_pass, strict=True):
        if not any(test in report.outcomes for test in tests):
            return KindRejection(Reason.FAILS_TOGETHER, f"no test of {part.candidate.name} runs with both parts")
    return None


def _reject_unusable_run(run: EvaluationRun) -> KindRejection:
    """Return the rejection for a run without a usable report."""
    result = run.result
    if result.exec_result.killed_by == "time":
        return KindRejection(Reason.OUT_OF_TIME, f"{result.failure_detail} after {result.exec_result.seconds:.0f} s")
    if not result.exec_result.killed_by and (result.infrastructure_error or not result.is_applied):
        detail = result.infrastructure_error or "the patch does not apply to the image"
        return KindRejection(Reason.DOES_NOT_APPLY, detail)
    return KindRejection(Reason.FAILS_TOGETHER, result.failure_detail)


# ------------------------------------------------------------------------------------------------------------- task


def _build_task(evaluation: PairEvaluation, statement: str) -> Task:
    """Return the task of a pair; fields that cannot be combined are those of the newer change."""
    pair, lists, put = evaluation.pair, evaluation.lists, evaluation.services.artifacts.put
    older, newer = pair.older, pair.newer
    controls = build_controls(
        evaluation.evaluator,
        pair.tree,
        older.candidate.base_commit,
        test_patch=pair.test_patch,
        gold_patch=pair.gold_patch,
        tests=[test for test, _ in lists.fail_to_pass],
    )
    environment = older.require_environment()
    return build_task(
        newer,
        Kind.COMBINED,
        other_candidates=(older.candidate.id,),
        base_commit=older.candidate.base_commit,
        version=older.candidate.version,
        license=older.candidate.license,
        problem_statement=statement,
        hints="\n\n".join(filter(None, (older.candidate.hints, newer.candidate.hints))),
        gold_patch=put(pair.gold_patch),
        test_patch=put(pair.test_patch),
        control_patch=put(controls.patch) if controls.confirmed else None,
        controls=controls.confirmed,
        FAIL_TO_PASS=lists.fail_to_pass,
        PASS_TO_PASS=lists.pass_to_pass,
        eval_script=put(evaluation.evaluator.script.encode()),
        plan=environment.plan,
        image=environment.image,
        image_digest=environment.image_digest,
        language_version=environment.plan.language_version,
        test_seconds=max(run.record.test_seconds for run in evaluation.gold_runs),
    )
