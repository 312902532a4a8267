"""Patterns of test paths in Python projects."""

from __future__ import annotations

import re

from languages.base import COMMON_TEST_PATTERNS

TEST_PATTERNS = (
    r"^(test|testing)/",  # often source below the top level: django/test, numpy/testing
    r"(^|/)test_[^/]*\.py$",
    r"(^|/)[^/]*_tests?\.py$",
    r"^tests?\.py$",
)
TEST_FILE = r"(^|/)(test_[^/]*|[^/]*_tests?|tests?)\.py$"
OLDEST = re.compile(
    r"(^|[/_.-])((min|minimum|lowest|oldest)[_-]?(deps|dependencies|vers(ions?)?|requirements?|reqs?)?|mins"
    r"|lower[_-](bounds?|constraints))(?=$|[/_.-])",
    re.IGNORECASE,
)
"""Matches names of the job that installs the oldest supported versions.

A job of several, often none for newer Pythons.
"""
UNRELEASED = re.compile(
    r"(^|[/_.-])(\w+dev|dev(el)?[_-]?deps|devinfra|pre(deps|releases?)|nightly|upstream|\w+(main|master)"
    r"|(?<=\w[/_.-])(main|master))(?=$|[/_.-])",
    re.IGNORECASE,
)
"""Matches names of the job that installs development versions of dependencies, as jobs that may fail do.

`django-main` is an example; `main` alone is more often a project's main suite.
"""
_TEST_PATH = re.compile("|".join((*COMMON_TEST_PATTERNS, *TEST_PATTERNS)))


def is_test_file(path: str) -> bool:
    """Return whether pytest or unittest may collect tests from the file."""
    return re.search(TEST_FILE, path) is not None


def is_test_path(path: str) -> bool:
    """Return whether a Python file is a test, or is in a test folder."""
    return path.endswith(".py") and _TEST_PATH.search(path) is not None
