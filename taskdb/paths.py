"""What a path in a repository is: test, test configuration, or neither. The whole system asks here and nowhere else.

The miner splits a change by it, the evaluation script puts back by it what a submission touched, so the two cannot
disagree: what a gold patch may touch is exactly what a submission may touch.
"""

from __future__ import annotations

import re

# Each pattern is POSIX-extended (grep -E) and Python regex at once: the evaluation script carries them verbatim.
TEST_PATTERNS: tuple[str, ...] = (
    r"(^|/)(tests|unit_?tests?|_tests?|testsuite|test_suite)/",
    r"^(test|testing)/",  # deeper down these are often source: django/test, numpy/testing
    r"(^|/)test_[^/]*\.py$",
    r"(^|/)[^/]*_tests?\.py$",
    r"^tests?\.py$",
)
"""Test files and what lies beside them (fixtures, data, snapshots)."""

RUNNER_PATTERNS: tuple[str, ...] = (
    r"(^|/)conftest\.py$",
    r"(^|/)\.?pytest\.(ini|toml)$",
    r"(^|/)tox\.ini$",
    r"(^|/)(sitecustomize|usercustomize)\.py$",
    r"\.pth$",
    r"(^|/)\.coveragerc$",
    r"(^|/)noxfile\.py$",
)
"""Configuration of the test runner and hooks of the interpreter: not for a submission to change."""

PROTECTED_PATTERNS: tuple[str, ...] = TEST_PATTERNS + RUNNER_PATTERNS

_PROTECTED = re.compile("|".join(PROTECTED_PATTERNS))
_TEST = re.compile("|".join(TEST_PATTERNS))
_PYTHON_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_tests?|tests?)\.py$")
_SOURCE = re.compile(r"\.(py|pyx|pxd|pyi|c|cc|cpp|h|hpp|rs)$")
_NOT_SOURCE = re.compile(
    r"(^|/)(docs?|documentation|examples?|benchmarks?|asv_bench|\.github)/|(^|/)(setup|conf)\.py$|(^|/)_version\.py$"
)


def is_protected(path: str) -> bool:
    """Whether `path` (posix, from the repository's root) belongs to the tests' side of a change."""
    return _PROTECTED.search(path) is not None


def is_test_file(path: str) -> bool:
    """Whether `path` is a Python file in which a test framework would look for tests."""
    return _PYTHON_TEST_FILE.search(path) is not None


def is_test_path(path: str) -> bool:
    """Whether `path` is a test file or lies among tests."""
    return _TEST.search(path) is not None


def is_source(path: str) -> bool:
    """Whether `path` is program text that a gold patch is about (not documentation, examples, packaging)."""
    return _SOURCE.search(path) is not None and not is_protected(path) and _NOT_SOURCE.search(path) is None
