"""Detection of tests in C and C++ projects."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from languages.source_tree import SourceTree
from taskdb.records import BuildPlan

SOURCES = r"\.(c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|inc|ipp)$"

_MACROS = re.compile(
    r"^\s*(TYPED_|CATCH_|DOCTEST_)?(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|TEST_CASE|TEST_CASE_METHOD|TEMPLATE_TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE"
    r"|BOOST_FIXTURE_TEST_CASE|START_TEST)\b\s*\(|^\s*(static\s+)?(void|int)\s+\w*test\w*\s*\(|\bmain\s*\(",
    re.MULTILINE | re.IGNORECASE,
)
_GOOGLE = re.compile(r"^\s*(TYPED_)?TEST(_F|_P)?\s*\(\s*\w+\s*,\s*\w+\s*\)", re.MULTILINE)
_CATCH = re.compile(
    r'^\s*(CATCH_|DOCTEST_)?(TEST_CASE(_METHOD|_FIXTURE|_TEMPLATE\w*)?|TEMPLATE_TEST_CASE\w*|SCENARIO)\s*\([^"\n]*"',
    re.MULTILINE,
)
"""Matches test cases of Catch2 and doctest, which have a title."""
_PROGRAM = re.compile(r"^\s*(extern\s+\S+\s+)?(int|void)?\s*main\s*\(", re.MULTILINE)
_ADDED = re.compile(r"""\badd_test\s*\(\s*(?:NAME\s+)?["']?([\w.+${}-]+)""", re.IGNORECASE)
_LOOP = re.compile(r"\bforeach\s*\(\s*\w+([^)]*)\)", re.IGNORECASE)
_BUNDLED = re.compile(
    r"(^|/)(g?(oogle)?test-?[\d.]*|googlemock|third_?party|3rd_?party|vendor|external|extern|deps)/.*(g?mock|gtest|googletest|/src/)"
)
_EXAMPLES = re.compile(r"(^|/)(docs?|examples?|samples?)/")
"""Matches files of examples, which may be projects of their own that no build of the tests includes."""

TEST_PATTERNS = (
    r"^(test|unittests?)/",
    rf"^([^/]+/)?(test|unittests?|t)/.*{SOURCES}",
    rf"(^|/)[^/]*[_-](unit)?tests?{SOURCES}",
    rf"(^|/)(unit)?test[_-][^/]*{SOURCES}",
    rf"(^|/)test/[^/]+{SOURCES}",
)
RUNNER_PATTERNS = (r"(^|/)CTestConfig\.cmake$", r"(^|/)CTestTestfile\.cmake$")
TEST_FILE = r"(?i)(^|/)((tests?|unit_?tests?|t)/.*|[^/]*[_-]?tests?|tests?[_-][^/]*)\.(c|cc|cpp|cxx|c\+\+)$"


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files that define tests; with a plan only those that reports can name.

    For GoogleTest and Catch2 these are files with its macros; for ctest, programs whose name is registered as a test.
    """
    pattern = re.compile(TEST_FILE)
    excluded = (_BUNDLED, _EXAMPLES) if plan else (_BUNDLED,)
    paths = sorted(
        p for p in tree.entries if pattern.search(p) and not any(exclusion.search(p) for exclusion in excluded)
    )
    paths = [path for path in paths if tree.is_file(path)]
    framework = plan.test.framework if plan else ""
    if framework in ("meson", "automake", "make", "programs"):
        return []
    definition = {"googletest": _GOOGLE, "catch2": _CATCH, "ctest": _PROGRAM}.get(framework, _MACROS)
    test_files = [path for path, text in tree.read_many(paths).items() if definition.search(text)]
    if framework != "ctest":
        return test_files
    registered = _read_test_names(tree)
    return [path for path in test_files if PurePosixPath(path).stem in registered]


def _read_test_names(tree: SourceTree) -> set[str]:
    """Return the names that CMake files register as tests, including the words of loops that register a test each."""
    texts = tree.read_many([path for path in tree.glob("*CMakeLists.txt") if not _BUNDLED.search(path)]).values()
    registered: set[str] = set()
    for text in (re.sub(r"#.*", "", text) for text in texts):
        names = [match[1] for match in _ADDED.finditer(text)]
        registered.update(names)
        if any(name.startswith("$") for name in names):
            registered.update(word for match in _LOOP.finditer(text) for word in match[1].split())
    return registered


def uses_google(tree: SourceTree) -> bool:
    """Return whether most files that define tests use GoogleTest."""
    return _is_used_by_most(tree, _GOOGLE)


def uses_catch(tree: SourceTree) -> bool:
    """Return whether most files that define tests use Catch2 or doctest."""
    return _is_used_by_most(tree, _CATCH)


def _is_used_by_most(tree: SourceTree, definition: re.Pattern[str]) -> bool:
    test_files = find_test_files(tree)
    return 2 * sum(definition.search(text) is not None for text in tree.read_many(test_files).values()) > len(
        test_files
    )
