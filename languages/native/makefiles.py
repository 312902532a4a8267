"""Plain makefiles: the target that runs the tests, from CI or by its name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import Evidence

_FOLDERS = ("", "test", "tests", "t", "unittest", "unittests", "src")
_NAMES = ("GNUmakefile", "makefile", "Makefile")
_TARGETS = (
    "test",
    "check",
    "tests",
    "unittest",
    "unittests",
    "unit-test",
    "unit-tests",
    "unit_test",
    "run-tests",
    "run_tests",
    "runtests",
    "run-test",
    "run_test",
    "runtest",
    "testall",
    "test-all",
)
"""Names of targets that run tests, most common first."""
_NOT_TESTS = re.compile(r"(?i)cpp|lint|format|style|tidy|spell|memcheck|valgrind|coverage|bench|fuzz|install")
"""Matches targets named as if they ran tests that check something else, or the same again with a slow tool."""
_RULE = re.compile(r"^(?P<targets>[^\s#:=.$(][^:=#\n]*?)\s*::?(?![=:])", re.MULTILINE)
_MAKE = re.compile(r"^(?:\w+=\S+\s+)*(?:sudo\s+)?g?make\b(?P<words>[^;&|]*)")


def find_test_target(tree: SourceTree, suffix: str = "") -> tuple[str, Evidence] | None:
    """Return the folder of the makefile with a target that runs tests, and the target with its file and line.

    Args:
        tree: the repository.
        suffix: of the makefiles' names, such as `.in` for those that a configure script completes.
    """
    in_ci = {(folder, target): evidence for folder, target, evidence in _read_ci_targets(tree)}
    for folder in _FOLDERS:
        path = next((p for name in _NAMES if tree.is_file(p := posixpath.join(folder, name + suffix))), "")
        targets = _read_targets(tree.read(path)) if path else {}
        used = {name: evidence for (where, name), evidence in in_ci.items() if where == folder and name in targets}
        if used:
            return folder, used[min(used, key=lambda name: _TARGETS.index(name) if name in _TARGETS else len(_TARGETS))]
        if named := [name for name in _TARGETS if name in targets]:
            return folder, Evidence(choice="test", value=named[0], path=path, line=targets[named[0]])
    return None


def _read_targets(text: str) -> dict[str, int]:
    """Return target -> line of the rules of a makefile."""
    targets: dict[str, int] = {}
    for match in _RULE.finditer(text):
        for name in match["targets"].split():
            targets.setdefault(name, text.count("\n", 0, match.start()) + 1)
    return targets


def _is_test_target(name: str) -> bool:
    return re.search(r"(?i)test|check", name) is not None and not _NOT_TESTS.search(name)


def _read_ci_targets(tree: SourceTree) -> Iterator[tuple[str, str, Evidence]]:
    """Yield (folder, target, evidence) of the targets named for tests that CI makes."""
    for job in read_jobs(tree):
        for line in () if job.is_auxiliary else job.lines:
            folder = posixpath.normpath(line.folder) if line.folder else ""
            for command in re.split(r"\s*(?:&&|;|\|\|)\s*", line.text):
                if entered := re.match(r"cd\s+([\w./-]+)$", command):
                    folder = posixpath.normpath(posixpath.join(folder, entered[1]))
                if made := _MAKE.match(command):
                    inside = re.search(r"(?:-C|--directory)[ =]?([\w./-]+)", made["words"])
                    where = posixpath.normpath(posixpath.join(folder, inside[1])) if inside else folder
                    for name in made["words"].split():
                        if re.search(r"(?i)^\w[\w.-]*$", name) and _is_test_target(name):
                            evidence = Evidence(choice="test", value=name, path=job.path, line=line.line)
                            yield ("" if where == "." else where), name, evidence
