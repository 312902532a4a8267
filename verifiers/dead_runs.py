"""Test-only runs that ended before all tests had run: the outcomes that they lack are read from a base run.

A runner that dies before the fix leaves no result of any test. The tests in which it died fail; every other test that
exists without the test patch, with the same text, has its outcome of the base run, so that it is FAIL_TO_PASS only if
it fails there as well. Where tests could not be compiled or loaded the definition is kept: they are absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from backends.git import GitError, GitRepository, list_patch_paths
from evaluation.controls.blocks import find_blocks, parse_test_file
from evaluation.controls.controls import read_test_files
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.evaluator import EvaluationRun
from evaluation.runner.run import EvaluationResult
from languages.registry import find_framework
from taskdb.records import TestId

FIRST_SIGNAL_CODE = 128
"""Exit codes above are those of processes that a signal ended."""

FATAL_ERROR = "Fatal Python error: "
"""Stands on the line of the test in which a signal ended the interpreter, above a traceback."""
_PROGRESS = re.compile(r"^(?P<file>\S+\.py) (?P<letters>[.FEsxX]*)")
_MORE_PROGRESS = re.compile(r"^(?P<letters>[.FEsxX]+) *(?:\[ *\d+%\])?$")
_NAMED = re.compile(r"^\S+\.py::")
_STATUS = re.compile(r"^ (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)")
_FRAME = re.compile(r'^  File "(?P<path>[^"]+)", line \d+ in (?P<function>\S+)$', re.MULTILINE)


def has_died(result: EvaluationResult, framework: str) -> bool:
    """Return whether the runner was ended by memory, a signal or a test.

    A missing report shows it only where the framework reports load errors, and starts no build.
    """
    code, known = result.exec_result.exit_code, find_framework(framework)
    if result.exec_result.killed_by:
        return result.exec_result.killed_by == "memory"
    if result.report is not None:
        return known is not None and code == known.interrupted_code and not result.report.uncollected
    return code > FIRST_SIGNAL_CODE or (
        known is not None and known.reports_load_errors and code != known.usage_error_code
    )


def find_unfinished_tests(log: str, gold: EvaluationReport) -> list[TestId]:
    """Return the tests in which pytest died, by its progress or by the traceback of `faulthandler`; sorted.

    Args:
        log: output of the run.
        gold: report of a run that ended; its tests have the same order within their file.
    """
    lines = [line.partition(FATAL_ERROR)[0] for line in log.splitlines()]
    return sorted(set(_find_by_name(lines, gold) or _find_by_progress(lines, gold) or _find_by_frames(log, gold)))


def _find_by_name(lines: Sequence[str], gold: EvaluationReport) -> list[TestId]:
    """Return the test whose name `pytest -v` printed last, if no status follows."""
    last = next((line for line in reversed(lines) if _NAMED.match(line)), "")
    test = max((test for test in gold.outcomes if last.startswith(test)), key=len, default="")
    return [] if not test or _STATUS.match(last.removeprefix(test)) else [test]


def _find_by_progress(lines: Sequence[str], gold: EvaluationReport) -> list[TestId]:
    """Return the test behind the last test whose letter stands behind the name of its file."""
    file, n_finished = "", 0
    for line in lines:
        if shown := _PROGRESS.match(line):
            file, n_finished = shown["file"], len(shown["letters"])
        elif file and (shown := _MORE_PROGRESS.match(line)):
            n_finished += len(shown["letters"])
    tests = [test for test in gold.outcomes if test.partition("::")[0] == file]
    return tests[n_finished : n_finished + 1]


def _find_by_frames(log: str, gold: EvaluationReport) -> list[TestId]:
    """Return the tests of the innermost function of a test file in the traceback of a fatal error."""
    for frame in _FRAME.finditer(log.partition(FATAL_ERROR)[2]):
        tests = [
            test
            for test in gold.outcomes
            if frame["path"].endswith(f"/{test.partition('::')[0]}") and _get_function(test) == frame["function"]
        ]
        if tests:
            return tests
    return []


def _get_function(test: TestId) -> str:
    return test.rpartition("::")[2].partition("[")[0]


@dataclass(frozen=True, kw_only=True)
class TestTexts:
    """Texts of the tests of a change's files, before and after the change.

    Args:
        repository: repository that holds the commit `base`.
        base: base commit.
        patch: gold patch and test patch.
    """

    __test__ = False
    repository: GitRepository
    base: str
    patch: bytes

    def is_new(self, test: TestId) -> bool:
        """Return whether the test's text does not stand in the base tree; True where it cannot be found.

        Tests in files that the change does not touch are not new; nor is any where git cannot read the patch.
        """
        file, _, rest = test.partition("::")
        if file not in self._contents:
            return False
        old, new = self._contents[file]
        name = max((name for name in (*old, *new) if name in rest), key=len, default="")
        return not name or old.get(name) != new.get(name)

    def may_have_tests(self, file: str) -> bool:
        """Return whether a file of the change has tests after it; True where its language has no grammar."""
        content = self._files[1].get(file)
        parsed = parse_test_file(file, content) if content is not None else None
        return content is not None and (
            parsed is None or any(block.node != parsed.root for block in find_blocks(parsed))
        )

    @cached_property
    def _files(self) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
        """Path -> content of the changed files, before and after; none where git cannot read or apply the patch."""
        try:
            return read_test_files(self.repository, self.base, self.patch, list_patch_paths(self.patch))
        except GitError:
            return {}, {}

    @cached_property
    def _contents(self) -> Mapping[str, tuple[Mapping[str, list[bytes]], Mapping[str, list[bytes]]]]:
        """Changed file -> name of a test -> its texts, before and after."""
        old, new = self._files
        return {path: (_read_texts(path, old.get(path)), _read_texts(path, new.get(path))) for path in {**old, **new}}


def _read_texts(path: str, content: bytes | None) -> dict[str, list[bytes]]:
    """Return name -> texts of the tests of a file; none for a file that is absent or cannot be parsed."""
    texts: dict[str, list[bytes]] = {}
    file = parse_test_file(path, content) if content is not None else None
    if file is None:
        return texts
    for block in find_blocks(file):
        if block.name_span:
            name = file.source[slice(*block.name_span)].decode()
            texts.setdefault(name, []).append(file.source[block.start : block.end])
    return texts


def has_lost_tests(run: EvaluationReport | None, gold: EvaluationReport, texts: TestTexts) -> bool:
    """Return whether the report of a test-only run lacks tests that are not new, although all its files were loaded."""
    if run is None or run.uncollected:
        return False
    lost = (test for test in gold.outcomes if gold.has_passed(test) and test not in run.outcomes)
    return any(not texts.is_new(test) for test in lost)


def complete_run(
    run: EvaluationRun, base: EvaluationReport, died_in: Iterable[TestId], texts: TestTexts
) -> EvaluationRun:
    """Return a test-only run with the base run's outcomes of the tests that it lacks and that are not new."""
    code = run.result.exec_result.exit_code
    detail = run.result.exec_result.killed_by or f"exit code {code}"
    died = Outcome(status=OutcomeStatus.ERROR, message=f"the test runner died in this test ({detail})")
    report = run.report
    outcomes = {test: outcome for test, outcome in base.outcomes.items() if not texts.is_new(test)}
    outcomes |= {**report.outcomes, **dict.fromkeys(died_in, died)}
    completed = EvaluationReport(outcomes=outcomes, uncollected=report.uncollected)
    return run.with_report(completed)
