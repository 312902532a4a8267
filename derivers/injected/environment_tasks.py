"""The tasks of an environment: many bugs, of which no two fail the same tests, and some tasks with several bugs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from derivers.base import get_next_number
from derivers.injected.screening import BugScreening
from derivers.injected.search import DetectedBug, Reason
from derivers.injected.task_builder import InjectedTaskBuilder, list_own_tests
from taskdb.records import Task, TestId

BUGS_OF_TENTH = {0: 3, 4: 2, 7: 2}
"""Last digit of a task's number -> its number of bugs; all others have one."""
MAX_WAITING_BUGS = 8
"""Detected bugs that wait for a task with several bugs."""
MAX_UNFORESEEN = 2
"""Bugs that fail tests which were not run with them, after which all tests are run with each."""

FailingSet = frozenset[TestId]


@dataclass(kw_only=True)
class EnvironmentTasks:
    """Builds the tasks of an environment from the bugs of a screening."""

    screening: BugScreening
    builder: InjectedTaskBuilder
    waiting: deque[DetectedBug] = field(default_factory=deque)
    """Detected bugs that no task has."""
    n_unforeseen: int = 0
    """Bugs with which other tests failed than were run with them."""
    _failing_sets: set[FailingSet] = field(default_factory=set)
    """FAIL_TO_PASS of all tasks of the environment."""

    def build_tasks(self, count: int, n_wanted: int | None = None) -> list[Task]:
        """Return at most `count` tasks, numbered after those that exist.

        Args:
            count: number of tasks of this step.
            n_wanted: number of tasks of the whole search; None for `count`.

        Raises:
            Transient: the engine failed.
        """
        search = self.screening.search
        existing = search.lineage.existing
        self._failing_sets = {frozenset(test for test, _ in task.FAIL_TO_PASS) for task in existing}
        number = get_next_number(search.lineage)
        detected = self.screening.iterate_detected(count if n_wanted is None else n_wanted)
        tasks: list[Task] = []
        while len(tasks) < count and not search.is_out_of_time():
            bugs = self._take_bugs(detected, self._count_bugs(number))
            if not bugs:
                break
            task = self._build_task(bugs, number)
            if isinstance(task, Reason):
                self._count_rejection(task)
                self.waiting.extend(bugs[1:])  # alone or with others they may give a task
                continue
            tasks.append(task)
            number += 1
            for bug in bugs:
                self.screening.queue.count_task(bug.mutation)
        return tasks

    def _build_task(self, bugs: list[DetectedBug], number: int) -> Task | Reason:
        """Return the task of some bugs, or why they give none."""
        task = self.builder.build_task(bugs, number, failing_sets=self._failing_sets)
        if isinstance(task, Task):
            self._failing_sets.add(frozenset(test for test, _ in task.FAIL_TO_PASS))
        return task

    def _count_bugs(self, number: int) -> int:
        """Return the number of bugs of a task by its number, or that of the settings."""
        fixed = self.screening.search.services.settings.derive.injected_bugs
        return fixed if fixed > 1 else BUGS_OF_TENTH.get(number % 10, 1)

    def _count_rejection(self, reason: Reason) -> None:
        self.screening.search.tally[reason] += 1
        if reason is Reason.FURTHER_TESTS_FAIL:
            self.n_unforeseen += 1
            if self.n_unforeseen == MAX_UNFORESEEN:
                self.screening.use_whole_suite()

    def _take_bugs(self, detected: Iterator[DetectedBug], count: int) -> list[DetectedBug]:
        """Return the bugs of the next task, at most `count`; empty where there are no more.

        They are in different functions, and with each a test fails by an assertion that passes with all of the others.
        The tests that fail with them together are not those of another task.
        """
        skipped: deque[DetectedBug] = deque()
        chosen: list[DetectedBug] = []
        while len(chosen) < count:
            bug = self.waiting.popleft() if self.waiting else next(detected, None)
            if bug is None:
                break
            if not chosen and frozenset(bug.failing_tests) in self._failing_sets:
                self.screening.search.tally[Reason.SAME_TESTS_FAIL] += 1
            elif all(list_own_tests([*chosen, bug])) and self._are_apart([*chosen, bug]):
                chosen.append(bug)
            else:
                skipped.append(bug)
                if len(skipped) >= MAX_WAITING_BUGS:
                    break
        self.waiting.extendleft(reversed(skipped))
        return chosen

    def _are_apart(self, bugs: list[DetectedBug]) -> bool:
        return len({self.builder.find_place(bug) for bug in bugs}) == len(bugs)
