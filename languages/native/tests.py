"""Where the tests of C and C++ projects are."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from languages.tree import Tree
from taskdb.records import BuildPlan

SOURCES = r"\.(c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|inc|ipp)$"

_MACROS = re.compile(
    r"^\s*(TYPED_)?(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|TEST_CASE|TEST_CASE_METHOD|TEMPLATE_TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE"
    r"|BOOST_FIXTURE_TEST_CASE|START_TEST)\b\s*\(|^\s*(static\s+)?(void|int)\s+\w*test\w*\s*\(|\bmain\s*\(",
    re.MULTILINE | re.IGNORECASE,
)
_GOOGLE = re.compile(r"^\s*(TYPED_)?TEST(_F|_P)?\s*\(\s*\w+\s*,\s*\w+\s*\)", re.MULTILINE)
_PROGRAM = re.compile(r"^\s*(extern\s+\S+\s+)?(int|void)?\s*main\s*\(", re.MULTILINE)
_ADDED = re.compile(r"""\badd_test\s*\(\s*(?:NAME\s+)?["']?([\w.+${}-]+)""", re.IGNORECASE)
_LOOP = re.compile(r"\bforeach\s*\(\s*\w+([^)]*)\)", re.IGNORECASE)
_BUNDLED = re.compile(
    r"(^|/)(g?(oogle)?test-?[\d.]*|googlemock|third_?party|3rd_?party|vendor|external|extern|deps)/.*(g?mock|gtest|googletest|/src/)"
)

TEST_PATTERNS = (
    r"^(test|unittests?)/",
    rf"^([^/]+/)?(test|unittests?|t)/.*{SOURCES}",
    rf"(^|/)[^/]*[_-](unit)?tests?{SOURCES}",
    rf"(^|/)(unit)?test[_-][^/]*{SOURCES}",
    rf"(^|/)test/[^/]+{SOURCES}",
)
RUNNER_PATTERNS = (r"(^|/)CTestConfig\.cmake$", r"(^|/)CTestTestfile\.cmake$")
TEST_FILE = r"(?i)(^|/)((tests?|unit_?tests?|t)/.*|[^/]*[_-]?tests?|tests?[_-][^/]*)\.(c|cc|cpp|cxx|c\+\+)$"


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files that define tests; with a plan only those that reports can name.

    That is each file with GoogleTest's macros, or for ctest each that is a program of its own, named where tests are
    added.
    """
    pattern = re.compile(TEST_FILE)
    paths = sorted(p for p in tree.entries if pattern.search(p) and not _BUNDLED.search(p) and tree.is_file(p))
    framework = plan.test.framework if plan else ""
    if framework in ("meson", "automake"):
        return []
    wanted = {"googletest": _GOOGLE, "ctest": _PROGRAM}.get(framework, _MACROS)
    found = [path for path, text in tree.read_many(paths).items() if wanted.search(text)]
    if framework != "ctest":
        return found
    added = _names_of_tests(tree)
    return [path for path in found if PurePosixPath(path).stem in added]


def _names_of_tests(tree: Tree) -> set[str]:
    """The names that CMake files give to tests, and the words of loops that add one for each."""
    texts = tree.read_many([path for path in tree.glob("*CMakeLists.txt") if not _BUNDLED.search(path)]).values()
    found: set[str] = set()
    for text in (re.sub(r"#.*", "", text) for text in texts):
        names = [match[1] for match in _ADDED.finditer(text)]
        found.update(names)
        if any(name.startswith("$") for name in names):
            found.update(word for match in _LOOP.finditer(text) for word in match[1].split())
    return found


def uses_google(tree: Tree) -> bool:
    """Whether most files that define tests do it with GoogleTest."""
    found = defining_files(tree)
    return 2 * sum(_GOOGLE.search(text) is not None for text in tree.read_many(found).values()) > len(found)
