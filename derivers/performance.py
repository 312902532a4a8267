"""A change for speed as a task: the same behaviour in less time, held against what the change itself gained.

The work that is timed is a few tests of the repository's own, run many times: those that the gold patch was seen to
shorten. Before and after are run in turn and compared by ranks; what is asked of a submission follows from the gain
that is sure, not from the one that was seen, and a second series of the base tree must show no gain at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from backends.git import GitError, Repository
from backends.sandbox.base import Series
from backends.services import Services
from backends.testing.bench import Bench
from backends.testing.outcomes import Status
from backends.testing.run import run_tests
from backends.testing.timing import ALPHA, RUNS, p_value, ratio, sure_gain
from backends.testing.twin_runs import twins_of
from backends.testing.workload import FRAMEWORKS, Clock, Sample, interleaved, workload_script
from derivers.base import Refusal, set_aside, task_of
from languages.paths import is_test_file
from taskdb.lineage import Lineage
from taskdb.oracles import Performance
from taskdb.records import Kind, Task, TestId
from taskdb.tags import ChangeKind

LOOKED_AT = 500
"""Tests among which the work is looked for, at most: of more than these, some from everywhere."""
ROUND_SECONDS = 0.01
"""A test that takes less is run several times in a round,"""
MOST_RUNS = 200
"""but no more often than this."""
LOOK_ROUNDS = 2
AGAIN_ROUNDS = 6
"""Rounds of the second look, at tests that were shorter in the first."""
MOST_LIKELY = 30
"""Tests that are looked at again, at most."""
SHARE = 0.2
"""A test is work when the gold patch saves at least so much of its time,"""
SECONDS: Mapping[Clock, float] = {"cpu": 0.001, "wall": 0.05}
"""and at least so many seconds: other work on this machine makes the time that passes longer by chance."""
TESTS = 10
"""Tests of the work, at most: those with which most is saved."""
WORK_SECONDS = 1.5
"""What the work takes in the base tree, about."""
MOST_ROUNDS = 500
LEAST_GAIN = 1.1
"""The gain that must be sure."""
OF_THE_SAVING = 0.8
"""A submission must save this share of the time that the gold patch is sure to save."""

STATEMENT = """{statement}

What the program does must stay exactly as it is: the tests that pass now must pass afterwards. What counts is the
{clock} that the work described above takes; it is measured on calls like those in the project's own tests.
"""
CLOCKS: Mapping[Clock, str] = {"cpu": "processor time", "wall": "time"}


class Reason(StrEnum):
    """Why a verified change is no performance task. What the judge has set aside has its finding's name for that."""

    NOT_A_PERFORMANCE_CHANGE = "not-a-performance-change"
    NO_WORKLOAD = "no-workload"
    """There is no test whose time could be taken before and after."""
    NO_STABLE_GAIN = "no-stable-gain"
    CONTROL_SHOWS_A_GAIN = "control-shows-a-gain"
    """The base tree was found to be faster than itself: this machine is too restless for this work."""


def performance(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """The performance task of a verified change; about thirty runs, most of them of a few tests alone.

    Raises:
        Transient: engine, disk or network failed.
    """
    candidate, environment = lineage.candidate, lineage.the_environment
    if candidate.kind is not ChangeKind.PERFORMANCE:
        return Refusal(Reason.NOT_A_PERFORMANCE_CHANGE, f"it is a change of another kind: {candidate.kind}")
    if refusal := set_aside(lineage):
        return refusal
    if environment.plan.test.framework not in FRAMEWORKS:
        framework = environment.plan.test.framework
        return Refusal(Reason.NO_WORKLOAD, f"tests of {framework} cannot be run many times in one process")
    with services.sandbox.series(environment.image, limits=services.test_limits()) as boxes:
        return Trial(lineage=lineage, services=services, boxes=boxes).made()


@dataclass(frozen=True, kw_only=True)
class Work:
    """Tests that the gold patch makes faster, and how often each is run."""

    script: str
    tests: tuple[TestId, ...]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Seconds that all runs of one test took without and with the gold patch."""

    before: float
    after: float

    @property
    def saved(self) -> float:
        """Seconds."""
        return self.before - self.after


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What was measured, by a clock that shows it."""

    clock: Clock
    ratio: float
    sure: float


@dataclass(kw_only=True)
class Trial:
    """One change's work, looked for and timed."""

    lineage: Lineage
    services: Services
    boxes: Series

    @cached_property
    def gold(self) -> bytes:
        """The gold patch."""
        return self.services.artifacts.get(self.lineage.candidate.gold_patch)

    @cached_property
    def test_patch(self) -> bytes:
        """The test patch."""
        return self.services.artifacts.get(self.lineage.candidate.test_patch)

    @cached_property
    def tree(self) -> Repository:
        """The history the change is from."""
        return self.services.clones.open(self.lineage.candidate.source, self.lineage.candidate.repo)

    def made(self) -> list[Task] | Refusal:
        """The task, or why there is none."""
        work = self._work()
        if isinstance(work, Refusal):
            return work
        gain = self._gain(work)
        return gain if isinstance(gain, Refusal) else [self._task(work, gain)]

    # ------------------------------------------------------------------------------------------------------ the work

    def _work(self) -> Work | Refusal:
        """Tests of the change's own files that take less time with it; where there are none, of all files."""
        passing = self.lineage.the_verification.PASS_TO_PASS
        touched = {path for path in self.lineage.candidate.test_files if is_test_file(path)}
        near = tuple(test for test in passing if test.partition("::")[0] in touched)
        refusal = Refusal(Reason.NO_WORKLOAD, "no test passes before and after")
        looks: tuple[tuple[tuple[TestId, ...], Clock], ...] = ((near, "cpu"), (passing, "cpu"), (near, "wall"))
        for tests, clock in dict.fromkeys(looks):
            if tests:
                found = self._among(tests[:: -(-len(tests) // LOOKED_AT)], clock)
                if isinstance(found, Work):
                    return found
                refusal = found
        return refusal

    def _among(self, tests: tuple[TestId, ...], clock: Clock) -> Work | Refusal:
        """The work made of those tests that take less time by the clock."""
        runs = self._runs(tests, clock)
        first = self._looked(runs, LOOK_ROUNDS, clock)
        if not first:
            return Refusal(Reason.NO_WORKLOAD, f"none of {len(tests)} tests passes when it is run again")
        likely = _longest_saved(first, clock, MOST_LIKELY)
        # Of many tests some take less time by chance, which does not happen to the same ones again.
        again = self._looked({test: runs[test] for test in likely}, AGAIN_ROUNDS, clock) if likely else {}
        chosen = sorted(_longest_saved(again, clock, TESTS))
        if not chosen:
            return Refusal(Reason.NO_STABLE_GAIN, f"none of {len(first)} tests takes noticeably less time")
        rounds = WORK_SECONDS * AGAIN_ROUNDS / sum(again[test].before for test in chosen)
        script = self._script({test: runs[test] for test in chosen}, max(1, min(MOST_ROUNDS, round(rounds))), "cpu")
        return Work(script=script, tests=tuple(chosen))

    def _runs(self, tests: tuple[TestId, ...], clock: Clock) -> dict[TestId, int]:
        """Of the tests that pass in the base tree, runs in one round, by what one run takes."""
        seconds = self._seconds(self._script(dict.fromkeys(tests, 1), 0, clock), b"")
        return {test: max(1, min(MOST_RUNS, int(ROUND_SECONDS / max(one, 1e-6)))) for test, one in seconds.items()}

    def _looked(self, runs: Mapping[TestId, int], rounds: int, clock: Clock) -> dict[TestId, Seen]:
        """What each test takes in both trees: the shorter of two looks at each. Those that pass in all of them."""
        if not runs:
            return {}
        script = self._script(runs, rounds, clock)
        before, one, other, last = (self._seconds(script, patch) for patch in (b"", self.gold, self.gold, b""))
        return {
            test: Seen(before=min(before[test], last[test]), after=min(one[test], other[test]))
            for test in runs if all(test in look for look in (before, one, other, last))
        }  # fmt: skip

    def _seconds(self, script: str, patch: bytes) -> dict[TestId, float]:
        """Seconds of all runs of each test that passed."""
        workdir = self.lineage.the_environment.plan.workdir
        report = run_tests(self.boxes, script, workdir=workdir, patch=patch).report
        outcomes = report.outcomes.items() if report else ()
        return {test: one.seconds for test, one in outcomes if one.status is Status.PASSED}

    def _script(self, tests: Mapping[TestId, int], rounds: int, clock: Clock) -> str:
        plan, base = self.lineage.the_environment.plan, self.lineage.candidate.base_commit
        verified = self.services.artifacts.text(self.lineage.the_verification.eval_script)
        return workload_script(
            plan, self.tree, base, test_patch=self.test_patch, gold_patch=self.gold, tests=tests, rounds=rounds,
            canaries="$report/canaries" in verified, clock=clock,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------ the gain

    def _gain(self, work: Work) -> Gain | Refusal:
        """What the gold patch gains: by processor time, else by the time that passes."""
        workdir = self.lineage.the_environment.plan.workdir
        patches = (b"", self.gold, b"")
        taken = interleaved(self.boxes, work.script, work.tests, patches, workdir=workdir, runs=RUNS)
        if isinstance(taken, Sample):
            return Refusal(Reason.NO_WORKLOAD, taken.fault or taken.wrong)
        found = list(_gains(taken))
        return next((gain for gain in found if isinstance(gain, Gain)), found[0])

    # ------------------------------------------------------------------------------------------------------ the task

    def _task(self, work: Work, gain: Gain) -> Task:
        lineage, put = self.lineage, self.services.artifacts.put
        saving = OF_THE_SAVING * (1 - 1 / gain.sure)
        # What else the change made its tests ask for is told by nobody: behaviour is to stay as it is.
        task = task_of(lineage, Kind.PERFORMANCE, FAIL_TO_PASS=())
        twins = self._twins(task, work)
        return task.model_copy(
            update={
                "problem_statement": STATEMENT.format(
                    statement=task.problem_statement, clock=CLOCKS[gain.clock]
                ),
                "oracle": Performance(
                    workload=put(work.script.encode()), tests=work.tests, clock=gain.clock,
                    ratio=round(gain.ratio, 3), threshold=round(1 / (1 - saving), 3),
                ),
                **twins,
            }
        )  # fmt: skip

    def _twins(self, task: Task, work: Work) -> dict[str, object]:
        """Twins of all tests in the change's own files, as those that pass before are what is timed.

        Where it has none, of all tests in the files of the work.
        """
        touched = set(self.lineage.candidate.test_files) or {test.partition("::")[0] for test in work.tests}
        tests = [test for test in task.PASS_TO_PASS if test.partition("::")[0] in touched]
        bench = Bench(
            services=self.services, boxes=self.boxes, image_digest=task.image_digest, workdir=task.the_plan.workdir,
            script=self.services.artifacts.text(task.the_script),
        )  # fmt: skip
        try:
            twins = twins_of(
                bench, self.tree, task.base_commit, test_patch=self.test_patch, solution=self.gold, tests=sorted(tests)
            )
        except GitError:
            return {}
        if not twins.confirmed:
            return {}
        return {"twin_patch": self.services.artifacts.put(twins.patch), "twins": twins.confirmed}


def _longest_saved(seen: Mapping[TestId, Seen], clock: Clock, most: int) -> list[TestId]:
    """Tests that take noticeably less time, those first with which most is saved; at most so many."""
    noticed = [test for test, one in seen.items() if one.saved >= max(SECONDS[clock], SHARE * one.before)]
    return sorted(noticed, key=lambda test: -seen[test].saved)[:most]


def _gains(taken: list[list[Sample]]) -> Iterator[Gain | Refusal]:
    """What each clock says of base tree, solved tree and base tree again."""
    for clock in CLOCKS:
        before, after, control = ([one.seconds(clock) for one in series] for series in taken)
        sure = sure_gain(before, after)
        if sure < LEAST_GAIN:
            seen = f"{ratio(before, after):.2f} times as fast by {clock} time, of which {max(sure, 1):.2f} is sure"
            yield Refusal(Reason.NO_STABLE_GAIN, seen)
        elif min(p_value(before, control), p_value(control, before)) < ALPHA:
            seen = f"the base tree differs from itself, {ratio(before, control):.2f} times by {clock} time"
            yield Refusal(Reason.CONTROL_SHOWS_A_GAIN, seen)
        else:
            yield Gain(clock=clock, ratio=ratio(before, after), sure=sure)
