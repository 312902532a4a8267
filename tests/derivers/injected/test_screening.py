"""Bugs that are tried in series: which tests are run with each, and when they are tried alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from derivers.injected import screening
from derivers.injected.bug_queue import BugQueue
from derivers.injected.bug_sites import FunctionMap
from derivers.injected.reach import TestGroup, TestReach
from derivers.injected.screening import BugScreening
from derivers.injected.search import BugSearch, DetectedBug, Reason
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.run import EvaluationResult
from evaluation.runner.series import SeriesRun
from mutation import Mutation
from tests.derivers.injected.test_search import make_result

CODE = b"def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\ndef unused():\n    return 3\n"
TEST_F, TEST_G = "tests/test_f.py::test", "tests/test_g.py::test"


def make_group(test: str, line: int) -> TestGroup:
    covered = {"a.py": frozenset({1, 5, 9, line})}
    return TestGroup(files=(test.partition("::")[0],), passing=frozenset({test}), covered=covered, seconds=1.0)


def make_bug(line: int, text: str) -> Mutation:
    after = b"".join(text.encode() if number == line else row for number, row in enumerate(CODE.splitlines(True), 1))
    return Mutation(operator=f"op{line}", path="a.py", line=line, detail=text, after=after)


@dataclass
class Runs:
    """Stands for the runs: those of a series and those alone, and the tests that fail with each text."""

    disturbed: bool = False
    series: list[Sequence[SeriesRun]] = field(default_factory=list)
    prepares: list[bool] = field(default_factory=list)
    """Whether each series let a further container be prepared."""
    alone: list[tuple[str, ...]] = field(default_factory=list)

    def run_series(self, *arguments: Any, last: bool, **_: Any) -> list[EvaluationResult] | None:
        """See `evaluation.runner.series`."""
        runs: Sequence[SeriesRun] = arguments[2]
        self.series.append(runs)
        self.prepares.append(not last)
        return None if self.disturbed else [self._make_result(run.files, run.after) for run in runs]

    def run_tests(self, *_: Any, files: tuple[str, ...], patch: bytes, **__: Any) -> EvaluationResult:
        """See `evaluation.runner.run`."""
        self.alone.append(files)
        return self._make_result(files, patch)

    def _make_result(self, files: Sequence[str], text: bytes) -> EvaluationResult:
        status = OutcomeStatus.FAILED if b"wrong" in text else OutcomeStatus.PASSED
        message = "NameError: x" if b"raises" in text else "assert 1 == 2"
        outcomes = {f"{file}::test": Outcome(status=status, message=message) for file in files}
        result = make_result()
        report = EvaluationReport(outcomes=outcomes, uncollected={})
        return EvaluationResult(**{**vars(result), "report": report})


def make_screening(bugs: Sequence[Mutation]) -> BugScreening:
    functions = FunctionMap({"a.py": CODE})
    groups = (make_group(TEST_F, 2), make_group(TEST_G, 6))
    lineage = SimpleNamespace(
        require_environment=lambda: SimpleNamespace(
            plan=SimpleNamespace(language="python", workdir="/testbed", test=None), base_report=""
        )
    )
    services = SimpleNamespace(
        settings=SimpleNamespace(budget=SimpleNamespace(seconds=1000.0)),
        test_limits=lambda _: SimpleNamespace(seconds=600.0),
    )
    search = BugSearch(
        lineage=cast("Any", lineage),
        services=cast("Any", services),
        files=(),
        test_files=frozenset({"tests/test_f.py", "tests/test_g.py"}),
    )
    search.base_result = replace(make_result(), cpu_seconds=0.75)
    search.pool = cast("Any", None)
    return BugScreening(
        search=search,
        queue=BugQueue(bugs, functions),
        reach=TestReach(groups=groups, functions=functions),
        whole=TestGroup(files=(), passing=frozenset({TEST_F, TEST_G}), covered=None, seconds=2.0),
        contents={"a.py": CODE},
    )


BUGS = [make_bug(2, "    return 'wrong'\n"), make_bug(6, "    return 4\n"), make_bug(10, "    return 'wrong'\n")]


@pytest.mark.parametrize("disturbed", [False, True])
def test_bugs_are_tried_with_the_tests_that_call_their_function(
    disturbed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(disturbed=disturbed)
    monkeypatch.setattr(screening, "run_series", runs.run_series)
    monkeypatch.setattr(screening, "run_tests", runs.run_tests)
    monkeypatch.setattr(BugSearch, "script", "")
    tried = make_screening(BUGS)
    (detected,) = tried.iterate_detected(3)
    assert (detected.mutation.line, detected.failing_tests) == (2, (TEST_F,))
    assert detected.report.has_failed(TEST_F)
    (series,) = runs.series
    assert runs.prepares == [False]
    assert [run.files for run in series] == [
        ("tests/test_f.py",),
        ("tests/test_g.py",),
        ("tests/test_f.py", "tests/test_g.py"),
    ]
    assert series[-1].path == ""
    assert [run.cpu_seconds for run in series] == [3, 3, 0]
    assert all(run.before == CODE for run in series[:-1])
    assert runs.alone == ([("tests/test_f.py",), ("tests/test_g.py",)] if disturbed else [])
    assert tried.search.tally == {Reason.NO_MUTANT_DETECTED: 2}, "no test calls the third, and none detects the second"


def test_a_bug_with_which_tests_only_raise_is_counted_and_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs()
    monkeypatch.setattr(screening, "run_series", runs.run_series)
    monkeypatch.setattr(BugSearch, "script", "")
    tried = make_screening([make_bug(2, "    return 'wrong', raises\n"), make_bug(6, "    return 'wrong'\n")])
    (detected,) = tried.iterate_detected(3)
    assert (detected.mutation.line, detected.asserting_tests) == (6, {TEST_G})
    assert tried.search.tally == {Reason.NO_ASSERTION_FAILS: 1}


def test_of_the_detected_bugs_those_come_first_whose_function_has_given_fewer_tasks() -> None:
    tried = make_screening([])
    bugs = [make_bug(line, f"    return {number}\n") for number, line in enumerate([2, 2, 2, 6])]
    test = frozenset({TEST_F})
    tried.detected += [
        DetectedBug(mutation=bug, patch=b"", failing_tests=(TEST_F,), asserting_tests=test, report=EMPTY_REPORT)
        for bug in bugs
    ]
    lines = []
    for detected in tried.iterate_detected(3):
        lines.append(detected.mutation.line)
        tried.queue.count_task(detected.mutation)
    assert lines == [2, 6, 2, 2]


def test_all_tests_are_run_where_others_fail_than_were_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs()
    monkeypatch.setattr(screening, "run_series", runs.run_series)
    monkeypatch.setattr(BugSearch, "script", "")
    tried = make_screening(BUGS)
    tried.use_whole_suite()
    list(tried.iterate_detected(3))
    assert [run.files for run in runs.series[0]] == [(), (), (), ()]


def test_the_number_of_bugs_grows_with_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs()
    monkeypatch.setattr(screening, "run_series", runs.run_series)
    monkeypatch.setattr(screening, "MAX_TRIED_BUGS", 1)
    monkeypatch.setattr(screening, "TRIED_BUGS_PER_TASK", 2)
    monkeypatch.setattr(BugSearch, "script", "")
    bugs = [make_bug(2, f"    return {number}\n") for number in range(30)]
    tried = make_screening(bugs)
    assert list(tried.iterate_detected(4)) == []
    assert len(tried.tried) == 9


def test_a_run_of_several_groups_has_the_limit_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs()
    monkeypatch.setattr(screening, "run_series", runs.run_series)
    monkeypatch.setattr(BugSearch, "script", "")
    tried = make_screening(BUGS)
    groups = tuple(replace(group, seconds=500.0) for group in tried.reach.groups)
    tried.reach = replace(tried.reach, groups=groups)
    list(tried.iterate_detected(3))
    assert [run.seconds for run in runs.series[0]] == [20.0, 20.0, 20.0], "five times two seconds, and ten"
