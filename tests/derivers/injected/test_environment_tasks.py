"""Tasks of an environment: their numbers, their bugs, and which failing sets may not occur again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from derivers.base import get_number
from derivers.injected.environment_tasks import EnvironmentTasks
from derivers.injected.screening import BugScreening
from derivers.injected.search import DetectedBug, Reason
from derivers.injected.task_builder import InjectedTaskBuilder
from evaluation.runner.evaluator import EMPTY_REPORT
from mutation import Mutation
from taskdb.records import FailureKind, Task
from tests import records


def make_bug(number: int, *tests: str, function: str = "", raising: Collection[str] = ()) -> DetectedBug:
    """Return a bug in a function of its own, with which some tests fail; those of `raising` by an exception."""
    mutation = Mutation(operator="constant", path="a.py", line=number, detail=function or f"f{number}", after=b"")
    failing = tests or (f"t.py::t{number}",)
    return DetectedBug(
        mutation=mutation,
        patch=b"",
        failing_tests=failing,
        asserting_tests=frozenset(failing) - set(raising),
        report=EMPTY_REPORT,
    )


def make_task(bugs: Sequence[DetectedBug], number: int) -> Task:
    pull = records.make_pull_request(1)
    candidate = records.make_candidate(pull)
    verification = records.make_verification(records.make_environment(candidate))
    failing = sorted({test for bug in bugs for test in bug.failing_tests})
    f2p = tuple((test, FailureKind.ASSERTION) for test in failing)
    return records.make_task(verification, candidate, FAIL_TO_PASS=f2p, name=f"ada__greet-1.injected-{number}")


@dataclass
class Factory:
    """Stands for the builder of tasks and the screening of bugs, without containers."""

    bugs: Sequence[DetectedBug]
    injected_bugs: int = 1
    existing: tuple[Task, ...] = ()
    rejected: dict[int, Reason] = field(default_factory=dict)
    """Line of a bug -> why it gives no task."""
    built: list[list[int]] = field(default_factory=list)
    max_tasks: int = 1000
    """Tasks that are built until the time is up."""
    whole: int = 0
    make_task: Callable[[Sequence[DetectedBug], int], Task] = make_task

    def build(self, count: int) -> tuple[list[Task], dict[Reason, int]]:
        """Return the tasks and the tally of rejected bugs."""
        settings = SimpleNamespace(derive=SimpleNamespace(injected_bugs=self.injected_bugs))
        services, tally = SimpleNamespace(settings=settings), Counter[Reason]()
        search = SimpleNamespace(
            lineage=SimpleNamespace(existing=self.existing),
            services=services,
            tally=tally,
            is_out_of_time=lambda: len(self.built) >= self.max_tasks,
        )
        screening = SimpleNamespace(
            search=search,
            queue=SimpleNamespace(count_task=lambda _: None),
            iterate_detected=self._iterate,
            use_whole_suite=self._use_whole_suite,
        )
        builder = SimpleNamespace(build_task=self._build_task, find_place=lambda bug: bug.mutation.detail)
        tasks = EnvironmentTasks(
            screening=cast("BugScreening", screening), builder=cast("InjectedTaskBuilder", builder)
        ).build_tasks(count)
        return tasks, dict(tally)

    def _iterate(self, *_: int | None) -> Iterator[DetectedBug]:
        yield from self.bugs

    def _use_whole_suite(self) -> None:
        self.whole += 1

    def _build_task(
        self, bugs: Sequence[DetectedBug], number: int, *, failing_sets: Collection[frozenset[str]]
    ) -> Task | Reason:
        self.built.append([bug.mutation.line for bug in bugs])
        task = self.rejected.get(bugs[0].mutation.line) or self.make_task(bugs, number)
        if isinstance(task, Task) and frozenset(test for test, _ in task.FAIL_TO_PASS) in failing_sets:
            return Reason.SAME_TESTS_FAIL
        return task


def list_numbers(tasks: Sequence[Task]) -> list[int]:
    return [get_number(task) for task in tasks]


def test_a_share_of_the_tasks_has_several_bugs() -> None:
    factory = Factory([make_bug(number) for number in range(1, 40)])
    tasks, _ = factory.build(20)
    assert list_numbers(tasks) == list(range(1, 21))
    assert [len(task.FAIL_TO_PASS) for task in tasks] == [1, 1, 1, 2, 1, 1, 2, 1, 1, 3] * 2
    used = [line for lines in factory.built for line in lines]
    assert len(used) == len(set(used)), "a bug was used twice"


def test_the_setting_fixes_the_number_of_bugs() -> None:
    tasks, _ = Factory([make_bug(number) for number in range(1, 10)], injected_bugs=2).build(4)
    assert [len(task.FAIL_TO_PASS) for task in tasks] == [2, 2, 2, 2]


def test_no_two_tasks_have_the_same_failing_set() -> None:
    existing = make_task([make_bug(1, "t.py::a")], 7)
    bugs = [make_bug(2, "t.py::a"), make_bug(3, "t.py::b"), make_bug(4, "t.py::b"), make_bug(5, "t.py::b", "t.py::a")]
    factory = Factory(bugs, existing=(existing,))
    tasks, tally = factory.build(10)
    assert [[test for test, _ in task.FAIL_TO_PASS] for task in tasks] == [["t.py::b"], ["t.py::a", "t.py::b"]]
    assert list_numbers(tasks) == [8, 9]
    assert tally == {Reason.SAME_TESTS_FAIL: 2}
    assert factory.built == [[3], [5]], "for the others no image is built"


def test_the_lists_decide_which_tests_fail() -> None:
    factory = Factory([make_bug(1, "t.py::a"), make_bug(2, "t.py::a", "t.py::flaky")])
    factory.make_task = lambda _, number: make_task([make_bug(1, "t.py::a")], number)
    tasks, tally = factory.build(2)
    assert (len(tasks), tally) == (1, {Reason.SAME_TESTS_FAIL: 1})


def test_each_of_several_bugs_has_a_function_and_a_failing_test_of_its_own() -> None:
    bugs = [
        make_bug(1, "t.py::a", function="f"),
        make_bug(2, "t.py::b", function="f"),
        make_bug(3, "t.py::a", "t.py::c", function="g"),
        make_bug(4, "t.py::d", function="h"),
    ]
    factory = Factory(bugs, injected_bugs=2)
    factory.build(2)
    assert factory.built == [[1, 4], [2, 3]], "those that were passed over wait for the next task"


def test_each_of_several_bugs_has_a_test_of_its_own_that_fails_by_an_assertion() -> None:
    bugs = [
        make_bug(1, "t.py::a", "t.py::x"),
        make_bug(2, "t.py::a", "t.py::b", raising=["t.py::b"]),
        make_bug(3, "t.py::c"),
    ]
    factory = Factory(bugs, injected_bugs=2)
    factory.build(1)
    assert factory.built == [[1, 3]]


def test_fewer_bugs_are_a_task_where_no_other_can_be_had() -> None:
    factory = Factory([make_bug(1), make_bug(2)], injected_bugs=3)
    tasks, _ = factory.build(5)
    assert (len(tasks), factory.built) == (1, [[1, 2]])


@pytest.mark.parametrize(("reason", "whole"), [(Reason.FURTHER_TESTS_FAIL, 1), (Reason.NOT_STABLE, 0)])
def test_unforeseen_failures_end_the_selection_of_tests(reason: Reason, whole: int) -> None:
    factory = Factory([make_bug(number) for number in range(1, 9)], rejected=dict.fromkeys(range(1, 5), reason))
    tasks, tally = factory.build(3)
    assert list_numbers(tasks) == [1, 2, 3]
    assert tally == {reason: 4}
    assert factory.whole == whole


def test_of_bugs_that_give_no_task_together_the_others_are_tried_again() -> None:
    factory = Factory(
        [make_bug(number) for number in range(1, 5)], injected_bugs=2, rejected={1: Reason.BUGS_DO_NOT_COMBINE}
    )
    tasks, _ = factory.build(5)
    assert factory.built == [[1, 2], [2, 3], [4]]
    assert len(tasks) == 2


def test_no_task_is_begun_when_the_time_is_up() -> None:
    tasks, _ = Factory([make_bug(number) for number in range(1, 9)], max_tasks=3).build(8)
    assert len(tasks) == 3
