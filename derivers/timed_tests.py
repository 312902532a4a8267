"""Tests and benchmarks of compiled languages that can be run by themselves, as `timed_rounds.py` needs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from backends.index import ScratchIndex
from languages.registry import frameworks_by_name
from taskdb.records import BuildPlan, TestId


def list_program_tests(
    plan: BuildPlan, index: ScratchIndex, passing: Sequence[TestId], files: Collection[str] | None
) -> tuple[TestId, ...]:
    """Return the benchmarks of the files, then the passing tests that can be run by themselves.

    Args:
        plan: plan of an environment whose framework compiles its tests into programs; none are returned for others.
        index: the tree with the tests.
        passing: ids of tests that pass before and after the change.
        files: files whose benchmarks are listed; None for all.
    """
    programs = frameworks_by_name()[plan.test.framework].programs
    if programs is None:
        return ()
    tests = [test for test in passing if re.fullmatch(programs.tests, test)]
    if not programs.benchmark_files:
        return tuple(tests)
    if files is None:
        raw = index.run_git("ls-files", "-z")
        files = [path.decode(errors="surrogateescape") for path in raw.split(b"\0") if path]
    benchmarks = [
        f"{path}::{name}"
        for path in sorted(set(files))
        if re.fullmatch(programs.benchmark_files, path) and (content := index.read_file(path)) is not None
        for name in programs.list_benchmarks(content)
    ]
    return (*benchmarks, *tests)
