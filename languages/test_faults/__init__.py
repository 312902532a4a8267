"""Rules that find tests which look at text instead of behaviour, or which can pass without running the program.

Tests that people wrote are not examined. The rules are for tests whose author is rewarded for a test that fails before
a change and passes after it: such an author may read the source instead of calling it. They read the text of a test
file, nothing is executed, and each refusal names a line. A language may have rules of
its own (`Language.find_test_fault`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum


class TestFaultReason(StrEnum):
    """Why a test file is refused. The values are stored as reasons of rejections."""

    __test__ = False
    UNREADABLE = "tests-unreadable"
    """It cannot be parsed, or defines no test."""
    READS_SOURCE = "tests-read-source"
    """It reads the program's files, or has the interpreter return their text."""
    SEARCHES_SOURCE = "tests-search-source"
    """It starts a program that prints or searches files."""
    READS_GIT = "tests-read-git"
    """It reads the repository's history or index."""
    NO_ASSERTION = "tests-assert-nothing"
    """A test asserts nothing, or only constants."""
    NO_CALL = "tests-call-nothing"
    """A test imports, or asserts that names exist, and calls nothing of the program."""
    SKIPS = "tests-skip"
    """A test is skipped, or passes, depending on the files that the tree contains."""
    CHANGES_SOURCE = "tests-change-source"
    """It writes to files of the program."""
    ENDS_RUN = "tests-end-run"
    """It ends the process, or reaches into the test runner."""


@dataclass(frozen=True, kw_only=True)
class TestFault:
    """A fault of a test file."""

    __test__ = False
    reason: TestFaultReason
    line: int
    """1-based."""
    detail: str


FindTestFault = Callable[[str, Collection[str]], TestFault | None]
"""Returns the first fault of a test file, given its text and the paths of the program's files."""
