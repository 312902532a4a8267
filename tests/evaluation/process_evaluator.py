"""An evaluator of Python tests in this process, for tests that count runs of the gold patch."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.evaluator import EvaluationRun
from evaluation.runner.time_limit import TimeLimit


def expand_cases(key: str, test: Callable[..., object]) -> list[tuple[str, Callable[[], object]]]:
    """Return a test for each row of its table, with the values in its id as pytest writes them."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        return [(key, test)]
    names, rows = marks[0].args
    cases = [row if "," in names else (row,) for row in rows]
    return [(f"{key}[{'-'.join(map(str, case))}]", partial(test, *case)) for case in cases]


def run_file(path: str, content: bytes, names: Mapping[str, object]) -> dict[str, Outcome]:
    """Return test id -> outcome of a file of pytest functions and unittest classes."""
    space: dict[str, Any] = {**names, "TestCase": unittest.TestCase, "pytest": pytest, "SOURCE": content.decode()}
    exec(compile(content, path, "exec"), space)  # noqa: S102 - our own text
    outcomes = {}
    for name, value in list(space.items()):
        tests: dict[str, Callable[[], object]] = {name: value} if name.startswith("test_") else {}
        if isinstance(value, type) and name.startswith("Test") and value is not unittest.TestCase:
            tests = {f"{name}::{key}": getattr(value(key), key) for key in dir(value) if key.startswith("test_")}
        cases = [case for key, test in tests.items() for case in expand_cases(key, test)]
        for key, test in cases:
            try:
                test()
                outcome = Outcome(status=OutcomeStatus.PASSED)
            except AssertionError as error:
                outcome = Outcome(status=OutcomeStatus.FAILED, message=f"AssertionError: {error}")
            except Exception as error:  # noqa: BLE001 - as a test runner does
                outcome = Outcome(status=OutcomeStatus.FAILED, message=f"{type(error).__name__}: {error}")
            outcomes[f"{path}::{key}"] = outcome
    return outcomes


class KilledRunError(BaseException):
    """A test took all the memory."""


@dataclass
class ProcessEvaluator:
    """Runs tests in this process, with the functions of the gold patch."""

    names: Mapping[str, object]
    tree: Mapping[str, bytes] = field(default_factory=dict)
    """Path -> content of further test files, of which a run has those that are named, or all."""
    test_seconds: float = 0.0
    """Duration that is reported for each test."""
    n_runs: int = 0
    n_series: int = 0
    drawn: list[Mapping[str, bytes]] = field(default_factory=list)
    limits: list[TimeLimit | None] = field(default_factory=list)
    files: list[Collection[str]] = field(default_factory=list)
    """Files of each run; empty for all."""
    last: list[bool] = field(default_factory=list)
    """Whether each run was announced as the last, so that no container is prepared for another."""

    def run(
        self,
        *_: object,
        test_files: Mapping[str, bytes],
        files: Collection[str] = (),
        time_limit: TimeLimit | None = None,
        last: bool = False,
        **__: object,
    ) -> EvaluationRun:
        self.n_runs += 1
        self.limits.append(time_limit)
        self.drawn.append(test_files)
        self.files.append(files)
        self.last.append(last)
        outcomes: dict[str, Outcome] = {}
        uncollected: dict[str, str] = {}
        killed_by = None
        further = {path: content for path, content in self.tree.items() if not files or path in files}
        for path, content in {**further, **test_files}.items():
            try:
                for test, outcome in run_file(path, content, self.names).items():
                    outcomes[test] = replace(outcome, seconds=self.test_seconds)
            except KilledRunError:
                killed_by, outcomes = "memory", {}
            except Exception as error:  # noqa: BLE001 - as a test runner does whose file cannot be loaded
                uncollected[path] = str(error)
        report = EvaluationReport(outcomes=outcomes, uncollected=uncollected)
        result, record = SimpleNamespace(report=report), SimpleNamespace(killed_by=killed_by, seconds=50.0)
        return cast(EvaluationRun, SimpleNamespace(report=report, result=result, record=record))

    def run_series(
        self, batch: Sequence[Mapping[str, bytes]], *, files: Sequence[str], passing: Collection[str], **_: object
    ) -> list[EvaluationReport] | None:
        """Return the reports of a series, which counts if tests pass with the contents of the tree."""
        self.n_series += 1
        *reports, last = (run_once(self, test_files, files).report for test_files in (*batch, {}))
        return reports if all(map(last.has_passed, passing)) else None


def run_once(evaluator: ProcessEvaluator, test_files: Mapping[str, bytes], files: Sequence[str]) -> EvaluationRun:
    """Return a run that an evaluator does not count."""
    return ProcessEvaluator(evaluator.names, evaluator.tree).run(test_files=test_files, files=files)
