"""Objections to an answer of the model, and the checks by other stages that a mirrored bug must pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from backends.services import Services
from derivers.base import KindRejection
from derivers.mirrored.answer import MirroredTestFile
from taskdb.records import Candidate, Task
from taskdb.records.lineage import Lineage


class Reason(StrEnum):
    """Why an environment gives no mirrored task.

    Further reasons are those of written tests (`tests-...`), of the judge's rules (`name-not-stated`), and of copies.
    """

    NO_MODEL = "no-model"
    NO_SIMILAR_CHANGE = "no-similar-change"
    """The database has no change of another project that may be mirrored, or all have been."""
    NO_PASSING_TESTS = "no-passing-tests"
    NO_TESTED_CODE = "no-tested-code"
    """Passing tests execute no source file that may have a bug."""
    OUT_OF_BUDGET = "out-of-budget"
    NO_ANSWER = "no-answer"
    """The model gave no JSON of the right form within its budget."""
    NO_COUNTERPART = "no-counterpart"
    """The model answers that the issue has no counterpart in the files it was shown."""
    BUG_OUTSIDE_SOURCE = "bug-outside-source"
    BUG_DOES_NOT_APPLY = "bug-does-not-apply"
    """A text to be replaced does not occur in its file, or several times."""
    BUG_DOES_NOT_PARSE = "bug-does-not-parse"
    BUG_DOES_NOTHING = "bug-does-nothing"
    """The files differ at most in comments and white space."""
    STATEMENT_LENGTH = "statement-length"
    STATEMENT_LEAKS = "statement-leaks"
    NAMES_OTHER_PROJECT = "names-other-project"
    """The statement names the project that the issue is from."""
    TESTS_NOT_RUN = "tests-not-run"
    """The test runner reports no test of the written files."""
    TESTS_FAIL_WITHOUT_BUG = "tests-fail-without-bug"
    TESTS_PASS_WITH_BUG = "tests-pass-with-bug"  # noqa: S105 - PASS is no password
    TIMES_OUT = "times-out"
    BUILD_BREAKS = "build-breaks"
    """With the bug, tests are missing from the report, or the runner writes none."""
    ALL_TESTS_FAIL = "all-tests-fail"
    """With the bug no test passes, or too many fail."""
    TESTS_IN_SOURCE = "tests-in-source"
    """Tests that the project has fail, in files that cannot be removed from the agent's tree."""
    NO_IMAGE = "no-image"
    NOT_STABLE = "not-stable"
    """In the task's own image no test fails in every run with the bug and passes in every run without it."""
    TESTS_UNRELIABLE = "tests-unreliable"
    """A written test does not have the same result in every run."""


class AnswerProgress(IntEnum):
    """How far an answer came, by which the reason of a rejection is chosen."""

    ANSWERED = 1
    BUG_READ = 2
    TESTS_READ = 3
    STATEMENT_READ = 4
    RUN = 5
    VERIFIED = 6


@dataclass(frozen=True, kw_only=True)
class MirrorObjection:
    """Why an answer is rejected. `detail` is also sent to the model: it has no times and addresses, which vary.

    `is_final`: whether no other answer about the same change can help.
    """

    reason: str
    detail: str
    progress: AnswerProgress
    is_final: bool = False


@dataclass(frozen=True, kw_only=True)
class MirrorGates:
    """Checks that belong to other stages: those of tests that a model wrote, and the judge's of statements."""

    check_files: Callable[[Sequence[MirroredTestFile], str, Collection[str]], KindRejection | None]
    """Function of written test files, the language, and the paths of the base tree; it runs nothing."""
    check_task: Callable[[Lineage, Task, Candidate, Services], Task | KindRejection]
    """Function of the change, its finished task and the mirrored change, which returns the task with its evidence."""


ACCEPT_ALL = MirrorGates(check_files=lambda *_: None, check_task=lambda _lineage, task, *_: task)
"""No checks, for tests of the steps before them."""
