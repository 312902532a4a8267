"""The tests with which a bug is tried: those of the files that execute its function."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from derivers.injected import reach
from derivers.injected.bug_sites import FunctionMap
from derivers.injected.reach import TestGroup, TestReach, measure_reach, split_files
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.run import EvaluationResult
from mutation import Mutation
from tests.derivers.injected.test_search import make_result

CODE = b"LIMIT = 3\n\n\ndef f(a):\n    if a:\n        return 1\n    return 2\n\n\ndef g(a):\n    return a\n"


def make_group(name: str, *lines: int) -> TestGroup:
    """Return a group of a file with a test, which executes some lines of the source file."""
    file = f"tests/test_{name}.py"
    return TestGroup(
        files=(file,), passing=frozenset({f"{file}::test"}), covered={"a.py": frozenset(lines)}, seconds=1.0
    )


REACH = TestReach(
    groups=(make_group("f", 1, 4, 5, 6, 10), make_group("g", 1, 4, 10, 11), make_group("none", 1, 4, 10)),
    functions=FunctionMap({"a.py": CODE}),
)


@pytest.mark.parametrize(
    ("line", "files"),
    [
        (5, ("tests/test_f.py",)),
        (7, ("tests/test_f.py",)),  # a line that no test executes, in a function that one calls
        (11, ("tests/test_g.py",)),
        (10, ("tests/test_f.py", "tests/test_g.py", "tests/test_none.py")),  # default values are computed when loading
        (1, ("tests/test_f.py", "tests/test_g.py", "tests/test_none.py")),
        (2, ("tests/test_f.py", "tests/test_g.py", "tests/test_none.py")),
    ],
)
def test_a_bug_is_tried_with_the_files_that_call_its_function(line: int, files: tuple[str, ...]) -> None:
    group = REACH.select(Mutation(operator="constant", path="a.py", line=line, detail="", after=b""))
    assert group is not None
    assert group.files == files
    assert group.passing == {f"{file}::test" for file in files}
    assert group.seconds == len(files)


def test_a_function_that_no_test_calls_is_not_tried() -> None:
    rest = replace(REACH, groups=REACH.groups[2:])
    assert rest.select(Mutation(operator="constant", path="a.py", line=5, detail="", after=b"")) is None


def test_without_a_collector_all_tests_are_run() -> None:
    whole = TestGroup(files=(), passing=frozenset({"a_test.go::TestA"}), covered=None, seconds=3.0)
    group = REACH.without_lines(whole).select(Mutation(operator="constant", path="a.py", line=5, detail="", after=b""))
    assert group is not None
    assert (group.files, group.passing) == ((), whole.passing)


@pytest.mark.parametrize(
    ("number", "parts"), [(2, [["a", "b"], ["c"]]), (3, [["a"], ["b"], ["c"]]), (40, [["a"], ["b"], ["c"]])]
)
def test_files_are_split_evenly(number: int, parts: list[list[str]]) -> None:
    assert list(split_files(["a", "b", "c"], number)) == parts
    assert list(split_files([], number)) == []


@pytest.mark.parametrize(
    ("suite", "each", "covered", "groups"),
    [
        (10.0, 3.0, True, [("tests/test_a.py", "tests/test_b.py"), ("tests/test_c.py",)]),
        (100.0, 3.0, True, [("tests/test_a.py",), ("tests/test_b.py",), ("tests/test_c.py",)]),
        (3.0, 1.0, True, [()]),  # too short to be divided
        (10.0, 7.0, True, [()]),  # a group takes almost as long as the suite
        (10.0, 3.0, False, [()]),  # the language has no collector
    ],
)
def test_a_suite_is_divided_where_that_saves_time(
    suite: float,
    each: float,
    covered: bool,
    groups: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = {"a.py": frozenset({1, 5})} if covered else None
    tests = [f"tests/test_{name}.py::test" for name in "abc"]
    monkeypatch.setattr(reach, "MAX_GROUPS", 2 if suite == 10.0 else 40)

    opened: list[None] = []
    prepared: list[bool] = []

    def run_tests(*_: Any, files: Sequence[str], last: bool, **__: Any) -> EvaluationResult:
        prepared.append(not last)
        outcomes = {f"{file}::test": Outcome(status=OutcomeStatus.PASSED) for file in files}
        result = make_result()
        return replace(
            result,
            report=EvaluationReport(outcomes=outcomes | {"flaky": outcomes[f"{files[0]}::test"]}, uncollected={}),
            exec_result=replace(result.exec_result, seconds=each),
            covered_lines=lines,
        )

    monkeypatch.setattr(reach, "run_tests", run_tests)
    whole = TestGroup(files=(), passing=frozenset(tests), covered=lines, seconds=suite)
    files = {test.partition("::")[0] for test in tests}

    def open_pool() -> Any:
        opened.append(None)
        return nullcontext()

    measured = measure_reach(open_pool, whole, REACH.functions, files, script="", workdir="/testbed")
    assert [group.files for group in measured.groups] == groups
    assert len(opened) == (covered and suite > 3.0), "no container is started where no group is run"
    assert prepared == [number < len(groups) for number in range(1, len(groups) + 1)] or groups == [()]
    assert frozenset[str]().union(*(group.passing for group in measured.groups)) == set(tests)
