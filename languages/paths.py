"""What a path in a repository is: test, test configuration, or neither. The whole system asks here and nowhere else.

The miner splits a change by it, the evaluation script puts back by it what a submission touched, so the two cannot
disagree: what a gold patch may touch is exactly what a submission may touch. A path is what any language says it is,
so a repository in several languages is split alike wherever it is looked at from.
"""

from __future__ import annotations

import re
from functools import cache

from languages.registry import all_languages, language, language_of_file

ANYWHERE: tuple[str, ...] = (r"(^|/)(tests|unit_?tests?|_tests?|testsuite|test_suite)/",)
"""Folders of tests in every language. `test` and `spec` are not among them: deeper down these are often source
(django/test, numpy/testing), so each language says how far it trusts them."""

_NOT_SOURCE = re.compile(
    r"(^|/)(docs?|documentation|examples?|benchmarks?|asv_bench|\.github)/|(^|/)(setup|conf)\.py$|(^|/)_version\.py$"
)


@cache
def test_patterns() -> tuple[str, ...]:
    """Patterns of test files and what lies beside them, of all languages."""
    return tuple(dict.fromkeys([*ANYWHERE, *(p for one in all_languages().values() for p in one.TEST_PATTERNS)]))


@cache
def protected_patterns() -> tuple[str, ...]:
    """Patterns of what is on the tests' side of a change: test files and configuration of runners.

    Each is POSIX-extended (grep -E) and Python regex at once: the evaluation script carries them verbatim.
    """
    return tuple(dict.fromkeys([*test_patterns(), *runner_patterns()]))


@cache
def runner_patterns() -> tuple[str, ...]:
    """Patterns of configuration of test runners, of all languages."""
    return tuple(dict.fromkeys(pattern for one in all_languages().values() for pattern in one.RUNNER_PATTERNS))


@cache
def config_patterns() -> tuple[str, ...]:
    """Patterns of files that may hold a runner's configuration beside other things.

    A submission's edits of them are put back too; where the gold patch changes one, its version belongs to the tests'
    side.
    """
    return tuple(dict.fromkeys(pattern for one in all_languages().values() for pattern in one.CONFIG_PATTERNS))


@cache
def _joined(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


@cache
def _test_file(name: str) -> re.Pattern[str]:
    return re.compile(language(name).TEST_FILE)


def is_protected(path: str) -> bool:
    """Whether `path` (posix, from the repository's root) belongs to the tests' side of a change."""
    return _joined(protected_patterns()).search(path) is not None


def is_config(path: str) -> bool:
    """Whether `path` may hold a runner's configuration beside other things."""
    return _joined(config_patterns()).search(path) is not None


def is_runner_config(path: str) -> bool:
    """Whether `path` is configuration of a test runner, or may hold such beside other things."""
    return _joined(runner_patterns() + config_patterns()).search(path) is not None


def is_test_file(path: str, in_language: str | None = None) -> bool:
    """Whether `path` is a file in which a test framework of its own (or the given) language would look for tests."""
    name = in_language or language_of_file(path)
    return name in all_languages() and _test_file(name).search(path) is not None


def is_test_path(path: str) -> bool:
    """Whether `path` is a test file or lies among tests."""
    return _joined(test_patterns()).search(path) is not None


def is_source(path: str) -> bool:
    """Whether `path` is program text that a gold patch is about (not documentation, examples, packaging)."""
    return language_of_file(path) in all_languages() and not is_protected(path) and not _NOT_SOURCE.search(path)
