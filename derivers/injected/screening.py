"""Screening of many bugs: they are tried in batches, each in a single container, with the tests that reach them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from derivers.injected.bug_queue import BugQueue, make_key
from derivers.injected.reach import TestGroup, TestReach
from derivers.injected.search import BugSearch, DetectedBug, Reason, compute_timeout
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.runner.series import SeriesRun, run_series
from evaluation.runner.time_limit import TimeLimit
from evaluation.script.render import TESTS_UID
from mutation import Mutation, build_patch
from taskdb.records import TestId

BATCH_SIZE = 20
"""Bugs that are tried in a container at most."""
MAX_BATCH_SECONDS = 3600.0
"""Time limit of a batch, to which the limits of its runs add up."""
MAX_TRIED_BUGS = 60
"""Bugs that are tried for an environment, in addition to those for each task."""
TRIED_BUGS_PER_TASK = 10
CPU_FACTOR = 2.0
"""A process with a bug is killed after this multiple of the CPU seconds of all processes of the base run."""
CPU_EXTRA_SECONDS = 1.0
"""CPU seconds added to that limit."""


@dataclass(kw_only=True)
class BugScreening:
    """Bugs of a queue, tried in batches in containers of the base tree."""

    search: BugSearch
    queue: BugQueue
    reach: TestReach
    whole: TestGroup
    """All tests that are run."""
    contents: Mapping[str, bytes]
    """Files of the base tree into which bugs are injected."""
    tried: list[str] = field(default_factory=list)
    """Keys of the bugs that were tried, also in earlier steps of the search (`bug_queue.make_key`)."""
    detected: deque[DetectedBug] = field(default_factory=deque)
    """Bugs of a batch with which tests fail, and which were not returned yet."""
    uses_whole_suite: bool = False

    def list_failing_sets(self) -> list[frozenset[TestId]]:
        """Return the tests that fail with each bug that was detected and not returned yet."""
        return [frozenset(bug.failing_tests) for bug in self.detected]

    def use_whole_suite(self) -> None:
        """Try all further bugs with all tests, as others fail than those that execute the code of a bug."""
        self.reach = self.reach.without_lines(self.whole)
        self.uses_whole_suite = True

    def iterate_detected(self, tasks: int) -> Iterator[DetectedBug]:
        """Yield the bugs with which tests fail; a limited number is tried.

        Args:
            tasks: number of tasks that the whole search is to give, to which the number of bugs and of those of a
                batch is limited: what one step leaves is for the next.

        Raises:
            Transient: the engine failed.
        """
        most = MAX_TRIED_BUGS + TRIED_BUGS_PER_TASK * tasks
        longest = self._compute_limit(self.whole)
        size = min(BATCH_SIZE, 2 * tasks + 2, max(1, int(MAX_BATCH_SECONDS / longest) - 1))
        while True:
            while self.detected:
                # Of a batch many bugs may be detected in a function and few in another.
                bug = min(self.detected, key=lambda bug: self.queue.rank_place(bug.mutation))
                self.detected.remove(bug)
                yield bug
            if len(self.tried) >= most or self.search.is_out_of_time():
                return
            batch = self.queue.take(min(size, most - len(self.tried)))
            if not batch:
                return
            self.tried += map(make_key, batch)
            groups = [self.reach.select(bug) for bug in batch]
            reached = [(bug, group) for bug, group in zip(batch, groups, strict=True) if group and group.passing]
            if n_unreached := len(batch) - len(reached):
                self.search.tally[Reason.NO_MUTANT_DETECTED] += n_unreached
            self.detected += self._screen(reached)

    def _screen(self, bugs: Sequence[tuple[Mutation, TestGroup]]) -> Iterator[DetectedBug]:
        """Yield those bugs of a batch that tests detect."""
        everything = self.whole.passing
        for (bug, group), result in zip(bugs, self._run(bugs), strict=True):
            patch = build_patch(bug.path, self.contents[bug.path], bug.after)
            detected = self.search.read_run(bug, patch, result, group.passing, everything)
            if detected:
                yield detected

    def _run(self, bugs: Sequence[tuple[Mutation, TestGroup]]) -> list[EvaluationResult]:
        """Return the result of the run with each bug: of a series, or alone where bugs disturb each other."""
        if not bugs:
            return []
        runs = [
            SeriesRun(
                path=bug.path,
                before=self.contents[bug.path],
                after=bug.after,
                files=group.files,
                seconds=self._compute_limit(group),
                cpu_seconds=self._compute_cpu_limit(),
            )
            for bug, group in bugs
        ]
        last = TestGroup.join([group for _, group in bugs])
        files = last.files if all(group.files for _, group in bugs) else self.whole.files
        runs.append(SeriesRun(files=files, seconds=self._compute_limit(self.whole)))
        results = None
        if sum(run.seconds for run in runs) <= MAX_BATCH_SECONDS:
            results = run_series(
                self.search.pool,
                self.search.script,
                runs,
                workdir=self.search.workdir,
                tests_uid=TESTS_UID,
                passing=last.passing,
                last=True,  # many searches end with this series, which takes far longer than the start of a container
            )
        return [self._run_alone(*pair) for pair in bugs] if results is None else results[:-1]

    def _compute_limit(self, group: TestGroup) -> float:
        """Return the time limit of a run, at most that of the suite: groups have the start of the runner in each."""
        return compute_timeout(self.search, min(group.seconds, self.whole.seconds))

    def _compute_cpu_limit(self) -> int:
        """Return the CPU seconds of a process in a run, 0 for no limit: an endless loop shall not use all of its time.

        They are those of the whole suite, as those of a group are unknown.
        """
        used = self.search.require_base_result().cpu_seconds
        return math.ceil(CPU_FACTOR * used + CPU_EXTRA_SECONDS) if used else 0

    def _run_alone(self, bug: Mutation, group: TestGroup) -> EvaluationResult:
        patch = build_patch(bug.path, self.contents[bug.path], bug.after)
        limit = TimeLimit(expected=0.0, minimum=self._compute_limit(group))
        return run_tests(
            self.search.pool,
            self.search.script,
            workdir=self.search.workdir,
            patch=patch,
            files=group.files,
            time_limit=limit,
        )
