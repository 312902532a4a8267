"""Tests and benchmarks of compiled languages that can be run by themselves, as `timed_rounds.py` needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from backends.index import ScratchIndex
from derivers.criterion import has_criterion_main, list_benchmarks
from languages.parsing import create_parser
from mutation.grammars import find_grammar
from taskdb.records import BuildPlan, TestId

_PLAIN_TESTS = {
    "go-test": re.compile(r".*_test\.go::Test\w*"),  # subtests run with their test
    "cargo-test": re.compile(r"(.*/)?tests/[^/]+\.rs::[\w:]+"),  # those of sources belong to the submission
    "maven": re.compile(r".*\.java::[\w:]+"),
}
"""Framework -> ids of tests that have a program of their own and are not parameters of another."""

_BENCHMARK_FILES = {
    "go-test": re.compile(r".*_test\.go"),
    "cargo-test": re.compile(r"(.*/)?benches/.*\.rs"),
}
"""Framework -> paths of files with benchmarks."""

_GO_BENCHMARK = re.compile(rb"^func (Benchmark(?![a-z])\w*)\(\w+ \*testing\.B\)", re.MULTILINE)


def list_program_tests(
    plan: BuildPlan, index: ScratchIndex, passing: Sequence[TestId], files: Collection[str] | None
) -> tuple[TestId, ...]:
    """Return the benchmarks of the files, then the passing tests that can be run by themselves.

    Args:
        plan: plan of an environment whose framework is among PROGRAM_FRAMEWORKS.
        index: the tree with the tests.
        passing: ids of tests that pass before and after the change.
        files: files whose benchmarks are listed; None for all.
    """
    framework = plan.test.framework
    tests = [test for test in passing if _PLAIN_TESTS[framework].fullmatch(test)]
    if framework not in _BENCHMARK_FILES:
        return tuple(tests)
    if files is None:
        raw = index.run_git("ls-files", "-z")
        files = [path.decode(errors="surrogateescape") for path in raw.split(b"\0") if path]
    found = [
        f"{path}::{name}"
        for path in sorted(set(files))
        if _BENCHMARK_FILES[framework].fullmatch(path) and (content := index.read_file(path)) is not None
        for name in _LIST_BENCHMARKS[framework](content)
    ]
    return (*found, *tests)


def _list_go_benchmarks(source: bytes) -> list[str]:
    return [name.decode() for name in _GO_BENCHMARK.findall(source)]


def _list_criterion_benchmarks(source: bytes) -> list[str]:
    grammar = find_grammar("benches/any.rs")
    if grammar is None or not has_criterion_main(source):
        return []
    root = create_parser(grammar.syntax).parse(source).root_node
    return list(dict.fromkeys(benchmark.name for benchmark in list_benchmarks(root)))


_LIST_BENCHMARKS: Mapping[str, Callable[[bytes], list[str]]] = {
    "go-test": _list_go_benchmarks,
    "cargo-test": _list_criterion_benchmarks,
}
"""Framework -> function that returns the names of a file's benchmarks."""
