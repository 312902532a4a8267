"""Answer of the model: new test files; and the rules that need no run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from posixpath import normpath

from pydantic import BaseModel, ConfigDict

from languages.paths import is_benchmark, is_runner_config, is_source, is_test_file, is_test_path
from languages.registry import get_language

MAX_FILES = 3
MAX_FILE_LINES = 400
MAX_FILE_CHARS = 30_000


class WritingReason(StrEnum):
    """Why written tests are rejected, in addition to the reasons of a verification and of `languages.test_faults`."""

    NO_MODEL = "no-model"
    NO_ANSWER = "no-tests-written"
    """The model gave no usable answer within its budget."""
    NOT_ONLY_TESTS = "tests-outside-tests"
    """A file is no test file, exists already, or is too large."""
    UNRELIABLE = "tests-unreliable"
    """A written test does not pass in every run with the gold patch."""
    WEAK = "tests-weak"
    """The tests pass with too many faults in the gold patch."""
    FALSE_ALARM = "tests-false-alarm"
    """A test fails on a rewrite of the gold patch that keeps its behaviour."""


class TestFileAnswer(BaseModel):
    """A new test file."""

    __test__ = False
    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )
    path: str
    """Path relative to the root of the repository; the file does not exist yet."""
    content: str
    """The whole file."""


class WrittenTestsAnswer(BaseModel):
    """The tests."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )
    files: list[TestFileAnswer]
    """One to three new test files."""


@dataclass(frozen=True, kw_only=True)
class Objection:
    """Why tests are rejected. `detail` is also sent to the model: it has no times and addresses, which vary.

    `is_final`: whether no other tests can help.
    """

    reason: str
    detail: str
    log: str | None = None
    is_final: bool = False


def find_path_objection(
    files: Sequence[TestFileAnswer], language: str, existing: Collection[str], gold_files: Collection[str]
) -> Objection | None:
    """Return why the files are not only new tests of the language, or are too large; None where they may be run."""
    detail = next(_iterate_path_faults(files, language, {*existing, *gold_files}), None)
    return Objection(reason=WritingReason.NOT_ONLY_TESTS, detail=detail) if detail else None


def _iterate_path_faults(files: Sequence[TestFileAnswer], language: str, existing: Collection[str]) -> Iterator[str]:
    if not 1 <= len(files) <= MAX_FILES:
        yield f"there are {len(files)} files, 1 to {MAX_FILES} are allowed"
    if len({file.path for file in files}) < len(files):
        yield "two files have the same path"
    for path, content in ((file.path, file.content) for file in files):
        if path.startswith("/") or normpath(path) != path or ".." in path.split("/") or not path.isprintable():
            yield f"{path!r} is no path relative to the root of the repository"
        if path in existing or any(path.startswith(f"{other}/") for other in existing):
            yield f"{path} exists, or lies below a file: write a new file"
        if is_source(path) or is_runner_config(path) or is_benchmark(path):
            yield f"{path} is source or configuration, not a test file"
        if not (is_test_file(path, language) and is_test_path(path)):
            yield f"{path} is no path of a test file"
        if content.count("\n") > MAX_FILE_LINES or len(content) > MAX_FILE_CHARS:
            yield f"{path} is longer than {MAX_FILE_LINES} lines or {MAX_FILE_CHARS} characters"


def find_text_objection(files: Sequence[TestFileAnswer], language: str, sources: Collection[str]) -> Objection | None:
    """Return why a file looks at text instead of behaviour, or may pass without running the program."""
    for file in files:
        if fault := get_language(language).find_test_fault(file.content, sources):
            return Objection(reason=fault.reason, detail=f"{file.path}:{fault.line}: {fault.detail}")
    return None
