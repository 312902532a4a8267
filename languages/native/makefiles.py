"""Plain makefiles: the target that runs the tests, from CI or by its name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

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
_TARGET = re.compile(r"(?i)^\w[\w.-]*$")
_MAKE = re.compile(r"^(?:\w+=\S+\s+)*(?:sudo\s+)?g?make\b(?P<words>[^;&|]*)")


def find_test_target(tree: SourceTree, suffix: str = "") -> tuple[str, Evidence] | None:
    """Return the folder of the makefile with a target that runs tests, and the target with its file and line.

    Args:
        tree: the repository.
        suffix: suffix of the makefiles' names, such as `.in` for those that a configure script completes.
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


@dataclass(frozen=True)
class MakeCall:
    """A call of make. `folder`: value of its option -C, relative to the folder in which it is called."""

    folder: str
    targets: tuple[str, ...]


def parse_make_command(text: str) -> MakeCall | None:
    """Return the target that a command of a shell makes, or None for a call of another program."""
    call = _MAKE.match(text)
    if call is None:
        return None
    folder = re.search(r"(?:-C|--directory)[ =]?([\w./-]+)", call["words"])
    targets = tuple(word for word in call["words"].split() if _TARGET.search(word))
    return MakeCall(folder=folder[1] if folder else "", targets=targets)


def _read_ci_targets(tree: SourceTree) -> Iterator[tuple[str, str, Evidence]]:
    """Yield (folder, target, evidence) of the targets named for tests that CI makes."""
    for job in read_jobs(tree):
        for line in () if job.is_auxiliary else job.lines:
            for folder, target in _iter_targets(line.text, line.folder):
                if _is_test_target(target):
                    yield folder, target, Evidence(choice="test", value=target, path=job.path, line=line.line)


def _iter_targets(text: str, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the folder and the name of each target that a line of commands makes; `cd` changes the folder."""
    for command in re.split(r"\s*(?:&&|;|\|\|)\s*", text):
        if entered := re.match(r"cd\s+([\w./-]+)$", command):
            folder = posixpath.join(folder, entered[1])
        elif call := parse_make_command(command):
            where = posixpath.normpath(posixpath.join(folder, call.folder))
            yield from (("" if where == "." else where, target) for target in call.targets)
