"""Two changes of one repository as one harder task, at the older one's base and in its box.

The gold patch is the older change with the newer one on top, the hidden tests likewise, the statement both texts. It is
kept only when each part is needed: with the other part alone, tests of this one fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath

from backends.git import GitError, Repository
from backends.sandbox.base import Series
from backends.services import Services
from backends.testing.bench import Bench, Done, settled
from backends.testing.lists import Lists, make_lists
from backends.testing.script import config_part, render_plan
from backends.testing.twin_runs import twins_of
from derivers.base import Refusal, task_of
from derivers.bugfix import bugfix
from derivers.feature import feature
from derivers.merging import on_top, without
from languages.paths import is_test_file
from taskdb.lineage import Lineage
from taskdb.records import Kind, RunKind, Task, TestId, Verification

ADJACENT = 20
"""Changes that touch nothing in common are still neighbours with at most so many commits of the main line between."""
REPEATS = 2
"""Runs of the tree without and of the tree with both parts; certification adds three more."""

STATEMENT = """Two things are to be done here, and both must hold in the end.

# First task

{first}

# Second task

{second}
"""


class Reason(StrEnum):
    """Why two verified changes make no task together."""

    TOO_FAR_APART = "too-far-apart"
    """They touch no folder in common and are no neighbours."""
    PART_IS_NO_TASK = "part-is-no-task"
    """One of them gives no task by itself: its statement was set aside, or tells too little."""
    DOES_NOT_APPLY = "does-not-apply"
    PART_NOT_NEEDED = "part-not-needed"
    DOES_NOT_HOLD_TOGETHER = "does-not-hold-together"
    OUT_OF_TIME = "out-of-time"


def combined(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """The task of a change together with an older one, `lineage.others[0]`; at most nine runs of the tests.

    Raises:
        Transient: engine, disk or network failed.
    """
    older = lineage.others[0]
    tree = services.clones.open(lineage.candidate.source, lineage.candidate.repo)
    if refusal := _far_apart(older, lineage, tree):
        return refusal
    statements = []
    for part in (older, lineage):
        statement = _statement(part, services)
        if isinstance(statement, Refusal):
            return statement
        statements.append(statement)
    try:
        pair = Pair.of(older, lineage, services, tree)
    except GitError as error:
        detail = f"{lineage.candidate.name} on top of {older.candidate.name}: {error}"
        return Refusal(Reason.DOES_NOT_APPLY, detail)
    with services.sandbox.series(older.the_environment.image, limits=services.test_limits()) as boxes:
        trial = Trial(pair=pair, services=services, boxes=boxes)
        if refusal := trial.refusal():
            return refusal
        return [_task(trial, STATEMENT.format(first=statements[0], second=statements[1]))]


def _far_apart(older: Lineage, newer: Lineage, tree: Repository) -> Refusal | None:
    """None for changes that touch a folder of sources in common, or between which few commits lie."""
    folders = [
        {str(PurePosixPath(path).parent) for path in part.candidate.gold_files} - {"."} for part in (older, newer)
    ]
    if folders[0] & folders[1] or set(older.candidate.gold_files) & set(newer.candidate.gold_files):
        return None
    span = f"{older.candidate.base_commit}..{newer.candidate.base_commit}"
    between = int(tree.git("rev-list", "--count", "--first-parent", span))
    if between <= ADJACENT:
        return None
    detail = f"{between} commits after {older.candidate.name}, and no folder in common"
    return Refusal(Reason.TOO_FAR_APART, detail)


def _statement(part: Lineage, services: Services) -> str | Refusal:
    """What the part's own task tells."""
    refused = []
    for make in (bugfix, feature):
        made = make(part, services)
        if not isinstance(made, Refusal):
            return made[0].problem_statement
        refused.append(made)
    why = refused[0] if len({refusal.reason for refusal in refused}) == 1 else refused[1]
    return Refusal(Reason.PART_IS_NO_TASK, f"{part.candidate.name}: {why.reason}: {why.detail}")


# ------------------------------------------------------------------------------------------------------ the patches


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Both changes as patches to the older one's base."""

    older: Lineage
    newer: Lineage
    tree: Repository
    gold: bytes
    tests: bytes
    older_alone: bytes
    newer_alone: bytes | None
    """None where the newer change has no place without the older one."""

    @classmethod
    def of(cls, older: Lineage, newer: Lineage, services: Services, tree: Repository) -> Pair:
        """The patches of two changes laid over each other.

        Raises:
            GitError: the newer change does not apply on top of the older one.
        """
        base, get = older.candidate.base_commit, services.artifacts.get
        first, second = get(older.candidate.gold_patch), get(newer.candidate.gold_patch)
        tests = on_top(tree, base, get(older.candidate.test_patch), get(newer.candidate.test_patch))
        return cls(
            older=older, newer=newer, tree=tree, gold=on_top(tree, base, first, second), tests=tests,
            older_alone=first, newer_alone=without(tree, base, first, second),
        )  # fmt: skip

    @cached_property
    def test_files(self) -> list[str]:
        """Files with tests that either change touches."""
        touched = {*self.older.candidate.test_files, *self.newer.candidate.test_files}
        return sorted(path for path in touched if is_test_file(path, self.older.candidate.language))

    @cached_property
    def files(self) -> tuple[str, ...]:
        """What is run; empty means the whole suite, as it does for the older change."""
        runs = self.older.the_verification.eval_files
        return tuple(sorted({*runs, *self.newer.the_verification.eval_files, *self.test_files})) if runs else ()

    @cached_property
    def own(self) -> tuple[list[TestId], list[TestId]]:
        """FAIL_TO_PASS of the older and of the newer change, each as it was verified alone."""
        return _fail_to_pass(self.older.the_verification), _fail_to_pass(self.newer.the_verification)


def _fail_to_pass(verification: Verification) -> list[TestId]:
    return [test for test, _ in verification.FAIL_TO_PASS]


# --------------------------------------------------------------------------------------------------------- the runs


@dataclass(kw_only=True)
class Trial:
    """The runs of a pair as they come in."""

    pair: Pair
    services: Services
    boxes: Series
    bench: Bench = field(init=False)
    """The image of the older change, and the script of both, as the first run settles them."""
    tested: list[Done] = field(default_factory=list)
    solved: list[Done] = field(default_factory=list)

    def _bench_of(self, beside: Sequence[str]) -> Bench:
        environment, pair = self.pair.older.the_environment, self.pair
        plan = environment.plan
        script = render_plan(
            plan, test_patch=pair.tests, files=pair.files, canaries_beside=beside,
            config_patch=config_part(pair.gold),
        )  # fmt: skip
        return Bench(
            services=self.services, boxes=self.boxes, image_digest=environment.image_digest, workdir=plan.workdir,
            script=script,
        )  # fmt: skip

    @cached_property
    def lists(self) -> Lists:
        """The lists by all runs of both trees."""
        return make_lists([done.report for done in self.tested], [done.report for done in self.solved])

    def refusal(self) -> Refusal | None:
        """Run what tells whether the two hold together and need each other; None when they do."""
        return self._together() or self._repeats() or self._needed()

    def _together(self) -> Refusal | None:
        """With both parts every test of theirs that is still there passes."""
        self.bench, first = settled(self._bench_of, self.pair.test_files, self.pair.gold)
        self.solved = [first]
        return _broken(self.pair, first)

    def _repeats(self) -> Refusal | None:
        files: list[str] = []
        for seed in range(REPEATS):
            if seed:
                report = self.solved[0].report
                files = sorted({*report.files(), *report.uncollected, *self.tested[0].report.files()})
                self.solved.append(self.bench.run(RunKind.SOLVED, seed=seed, patch=self.pair.gold, files=files))
            self.tested.append(self.bench.run(RunKind.TESTED, seed=seed, files=files))
        if killed := next((done for done in (*self.tested, *self.solved) if done.result.ran.killed_by), None):
            return _unusable(killed)
        return None

    def _needed(self) -> Refusal | None:
        """Each part has tests that fail with nothing but the other part."""
        found = {test for test, _ in self.lists.fail_to_pass}
        for other, tests, part in (
            (self.pair.newer_alone, self.pair.own[0], self.pair.older),
            (self.pair.older_alone, self.pair.own[1], self.pair.newer),
        ):
            left = [test for test in tests if test in found]
            if not left:
                detail = f"no test of {part.candidate.name} fails without both and passes with them"
                return Refusal(Reason.PART_NOT_NEEDED, detail)
            if other is None:
                continue
            done = self.bench.run(RunKind.SOLVED, patch=other)
            if done.result.ran.killed_by or not done.result.applied:
                return _unusable(done)
            if all(done.report.passed(test) for test in left):
                detail = f"the tests of {part.candidate.name} pass with the other change alone"
                return Refusal(Reason.PART_NOT_NEEDED, detail)
        return None


def _broken(pair: Pair, done: Done) -> Refusal | None:
    """What speaks against a run with both parts."""
    result, report = done.result, done.report
    if result.ran.killed_by or result.infrastructure_error or not result.applied or result.report is None:
        return _unusable(done)
    if lost := sorted(path for path in report.uncollected if path in pair.test_files):
        return Refusal(Reason.DOES_NOT_HOLD_TOGETHER, f"{lost[0]} cannot be loaded: {report.uncollected[lost[0]]}")
    failing = [test for test in (*pair.own[0], *pair.own[1]) if test in report.outcomes and not report.passed(test)]
    failing += [test for test in pair.older.the_verification.PASS_TO_PASS if report.failed(test)]
    if failing:
        detail = f"{len(failing)} tests of the two fail with both, such as {failing[0]}"
        return Refusal(Reason.DOES_NOT_HOLD_TOGETHER, detail)
    for part, tests in zip((pair.older, pair.newer), pair.own, strict=True):
        if not any(test in report.outcomes for test in tests):
            return Refusal(Reason.DOES_NOT_HOLD_TOGETHER, f"no test of {part.candidate.name} is left with both")
    return None


def _unusable(done: Done) -> Refusal:
    """Of a run from which nothing can be read."""
    result = done.result
    if result.ran.killed_by == "time":
        return Refusal(Reason.OUT_OF_TIME, f"{result.broken} after {result.ran.seconds:.0f} s")
    if not result.ran.killed_by and (result.infrastructure_error or not result.applied):
        why = result.infrastructure_error or "the patch does not apply to the image"
        return Refusal(Reason.DOES_NOT_APPLY, why)
    return Refusal(Reason.DOES_NOT_HOLD_TOGETHER, result.broken)


# --------------------------------------------------------------------------------------------------------- the task


def _task(trial: Trial, statement: str) -> Task:
    """The task of a pair that holds: the newer change's, where it is not the older one's or both's."""
    pair, lists, put = trial.pair, trial.lists, trial.services.artifacts.put
    older, newer = pair.older, pair.newer
    twins = twins_of(
        trial.bench, pair.tree, older.candidate.base_commit, test_patch=pair.tests, solution=pair.gold,
        tests=[test for test, _ in lists.fail_to_pass],
    )  # fmt: skip
    box = older.the_environment
    return task_of(
        newer, Kind.COMBINED, others=(older.candidate.id,), base_commit=older.candidate.base_commit,
        version=older.candidate.version, license=older.candidate.license, problem_statement=statement,
        hints="\n\n".join(filter(None, (older.candidate.hints, newer.candidate.hints))),
        gold_patch=put(pair.gold), test_patch=put(pair.tests),
        twin_patch=put(twins.patch) if twins.confirmed else None, twins=twins.confirmed,
        FAIL_TO_PASS=lists.fail_to_pass, PASS_TO_PASS=lists.pass_to_pass,
        eval_script=put(trial.bench.script.encode()), plan=box.plan, image=box.image, image_digest=box.image_digest,
        language_version=box.plan.language_version,
        test_seconds=max(done.record.test_seconds for done in trial.solved),
    )  # fmt: skip
