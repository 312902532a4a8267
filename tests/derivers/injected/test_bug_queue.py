"""Which bugs are tried next: files, functions and operators in turn."""

from __future__ import annotations

from collections import Counter

from derivers.injected.bug_queue import BugQueue
from derivers.injected.bug_sites import FunctionMap
from mutation import Mutation, generate_mutants
from taskdb.records import Injection

CODE = b"""def f(a, b):
    if a < b and a:
        return 2
    return a + 3


def g(a, b):
    if a < b and b:
        return a - 1
    return max(a, b) + 5
"""
CONTENTS = {"a.py": CODE, "b.py": CODE.replace(b"f(a", b"h(a").replace(b"g(a", b"k(a")}


def list_bugs() -> list[Mutation]:
    return [bug for path, content in CONTENTS.items() for bug in generate_mutants(path, content)]


def test_files_and_functions_take_turns() -> None:
    queue = BugQueue(list_bugs(), FunctionMap(CONTENTS))
    places = [queue.find_place(bug) for bug in queue.take(4)]
    assert sorted(places) == [("a.py", "f"), ("a.py", "g"), ("b.py", "h"), ("b.py", "k")]
    assert [path for path, _ in places] == ["a.py", "b.py", "a.py", "b.py"]


def test_operators_take_turns_and_every_bug_is_tried_once() -> None:
    bugs = list_bugs()
    queue = BugQueue(bugs, FunctionMap(CONTENTS))
    first = Counter(bug.operator for bug in queue.take(8))
    assert max(first.values()) == 1, "an operator was repeated while others were left"
    rest = queue.take(1000)
    assert len(rest) + 8 == len(bugs)
    assert len(queue) == 0
    assert queue.take(1) == []


def test_an_operator_that_gave_tasks_comes_later() -> None:
    bugs = [bug for bug in list_bugs() if bug.path == "a.py"]
    queue = BugQueue(bugs, FunctionMap(CONTENTS))
    (first,) = queue.take(1)
    for _ in range(3):
        queue.count_task(first)
    others = {bug.operator for bug in bugs} - {first.operator}
    assert {bug.operator for bug in queue.take(len(others))} & {first.operator} == set()


def test_bugs_of_people_come_more_often_than_those_of_an_operator() -> None:
    bugs = [
        Mutation(operator=operator, path="a.py", line=2, detail=f"{operator} {number}", after=b"")
        for operator in ("constant", "history")
        for number in range(12)
    ]
    queue = BugQueue(bugs, FunctionMap(CONTENTS))
    operators = []
    for _ in range(12):
        (bug,) = queue.take(1)
        queue.count_task(bug)
        operators.append(bug.operator)
    assert Counter(operators) == {"history": 10, "constant": 2}


def test_bugs_of_tasks_that_exist_are_not_tried_again() -> None:
    bugs = list_bugs()
    bug = bugs[0]
    used = Injection(path=bug.path, function="f", operator=bug.operator, line=bug.line, detail=bug.detail)
    queue = BugQueue(bugs, FunctionMap(CONTENTS), [used])
    taken = queue.take(1000)
    assert bug not in taken
    assert len(taken) == len(bugs) - 1
    assert taken[0].path == "b.py", "the file of the task has had its turn"
