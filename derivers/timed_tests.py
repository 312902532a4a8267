"""Tests and benchmarks of compiled languages that can be run by themselves, as `timed_rounds.py` needs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from backends.index import ScratchIndex
from taskdb.records import BuildPlan, TestId

_PLAIN_TESTS = {
    "go-test": re.compile(r".*_test\.go::Test\w*"),  # subtests run with their test
    "cargo-test": re.compile(r"(.*/)?tests/[^/]+\.rs::[\w:]+"),  # those of sources belong to the submission
    "maven": re.compile(r".*\.java::[\w:]+"),
}
"""Framework -> ids of tests that have a program of their own and are no parameters of another."""

_BENCHMARK = re.compile(rb"^func (Benchmark(?![a-z])\w*)\(\w+ \*testing\.B\)", re.MULTILINE)


def list_program_tests(
    plan: BuildPlan, index: ScratchIndex, passing: Sequence[TestId], files: Collection[str] | None
) -> tuple[TestId, ...]:
    """Return the benchmarks of the files, then the passing tests that can be run by themselves.

    Args:
        plan: of an environment whose framework is one of PROGRAM_FRAMEWORKS.
        index: the tree with the tests.
        passing: ids of tests that pass before and after the change.
        files: test files whose benchmarks are listed; None for all of the plan's folder.
    """
    pattern = _PLAIN_TESTS[plan.test.framework]
    tests = [test for test in passing if pattern.fullmatch(test)]
    if plan.test.framework != "go-test":
        return tuple(tests)
    if files is None:
        raw = index.run_git("ls-files", "-z", "--", f"{plan.test.folder or '.'}/*_test.go", "*_test.go")
        files = [path.decode(errors="surrogateescape") for path in raw.split(b"\0") if path]
    found = [
        f"{path}::{name.decode()}"
        for path in sorted(set(files))
        if path.endswith("_test.go") and (content := index.read_file(path)) is not None
        for name in _BENCHMARK.findall(content)
    ]
    return (*found, *tests)
