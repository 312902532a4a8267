"""What CMake files say: whether there are tests, which options turn them on, what they would fetch from a forge."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import Evidence

_OPTION = re.compile(r"^\s*(?:cmake_dependent_)?option\s*\(\s*(\w+)", re.IGNORECASE | re.MULTILINE)
_SET_CACHE = re.compile(r"^\s*set\s*\(\s*(\w+)\s+\S+\s+CACHE\s+BOOL", re.IGNORECASE | re.MULTILINE)
_TEST_OPTION = re.compile(
    r"(^|_|[a-z])(BUILD_?)?(UNIT_?)?(TESTS?|TESTING|Tests?|UnitTests?)$|^(BUILD|ENABLE|WITH)_(UNIT_?)?TESTS?(_|$)"
)
_DEVELOPMENT = re.compile(r"_DEVELOPMENT_BUILD$|_DEV(ELOPER)?_MODE$")
_NOT_THESE = re.compile(
    r"FUZZ|BENCH|PERF|PEDANTIC|EXTRA_TEST|PARSE_CATCH|COVERAGE|INSTALL|CUDA|SYSTEM|EXTERNAL|DOWNLOAD|SANITIZ|VALGRIND|PYTHON|JAVA|NETWORK|STRESS|EXPENSIVE"
    r"|CONFIGURE_TEST|HELPER_TEST|MODULE_TEST|FIND_PACKAGE|ADD_SUBDIRECTORY|ONLINE|COMPILE_FAIL"
)
_OFF = re.compile(
    r"(^|_)(WERROR|WARNINGS?_AS_ERRORS?|FORMAT_SOURCE|CLANG_TIDY|CPPCHECK|(BUILD|ENABLE|WITH|INSTALL)_(BENCH(MARKS?|ES)?|DOCS?|MAN_?(PAGES?)?|FUZZ(ERS?|ING)?))$"
)
_GIVEN = re.compile(r"\s-D\s*([A-Za-z_]\w*)(?::\w+)?=(ON|OFF|TRUE|FALSE|YES|NO|1|0)\b", re.IGNORECASE)
_FETCHED = re.compile(r"\bFetchContent_Declare\s*\(\s*([\w.-]+)", re.IGNORECASE)
_TESTS = re.compile(r"^\s*(enable_testing\s*\(|include\s*\(\s*CTest\s*\)|add_test\s*\()", re.IGNORECASE | re.MULTILINE)
_MINIMUM = re.compile(r"cmake_minimum_required\s*\(\s*VERSION\s+(\d+)\.(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class CMake:
    """The CMake project of a tree; `folder` is that of its top CMakeLists.txt, empty for the root."""

    tree: Tree
    folder: str

    @property
    def path(self) -> str:
        """Its top file."""
        return posixpath.join(self.folder, "CMakeLists.txt")

    @cached_property
    def texts(self) -> dict[str, str]:
        """Path -> text of its own CMake files."""
        start = f"{self.folder}/" if self.folder else ""
        paths = [
            path
            for path in sorted(self.tree.entries)
            if path.startswith(start)
            and re.search(r"(^|/)CMakeLists\.txt$|\.cmake$", path)
            and not re.search(
                r"(^|/)(third_?party|3rd_?party|vendor|external|extern|examples?|g(oogle)?(test|mock)[-.\d]*)/", path
            )
        ]
        return self.tree.read_many(paths)

    def names(self) -> set[str]:
        """What the project calls itself, in small letters."""
        pattern = re.compile(r"^\s*project\s*\(\s*[\"']?([\w.-]+)", re.IGNORECASE | re.MULTILINE)
        return {match[1].lower() for text in self.texts.values() for match in pattern.finditer(text)}

    def has_tests(self) -> bool:
        """Whether ctest would know any."""
        return any(_TESTS.search(text) for text in self.texts.values())

    def minimum(self) -> tuple[int, int]:
        """The oldest CMake that will do."""
        match = _MINIMUM.search(self.texts.get(self.path, ""))
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def switches(self) -> Iterator[Evidence]:
        """`NAME=ON` of options that turn tests on and `NAME=OFF` of those of style, benchmarks and documents."""
        yield Evidence(choice="test", value="BUILD_TESTING=ON", path=self.path, line=0)
        seen = {"BUILD_TESTING"}
        for path, text in self.texts.items():
            for match in [*_OPTION.finditer(text), *_SET_CACHE.finditer(text)]:
                name, line = match[1], text.count("\n", 0, match.start(1)) + 1
                on = _TEST_OPTION.search(name) or _DEVELOPMENT.search(name)
                off = _OFF.search(name)
                if name in seen or not (on or off) or (not off and _NOT_THESE.search(name.upper())):
                    continue
                seen.add(name)
                value = "OFF" if off and "DISABLE" not in name.upper() else "ON"
                yield Evidence(choice="test", value=f"{name}={value}", path=path, line=line)

    def given_by_ci(self) -> Iterator[Evidence]:
        """`NAME=VALUE` of the project's options as CI's first job that calls CMake gives them."""
        known = {match[1] for text in self.texts.values() for match in _OPTION.finditer(text)}
        for job in jobs(self.tree):
            lines = [] if job.is_beside else [line for line in job.lines if re.search(r"\bcmake\b", line.text)]
            found = [(match, line) for line in lines for match in _GIVEN.finditer(line.text)]
            if not found:
                continue
            for match, line in found:
                if match[1] in known and not _NOT_THESE.search(match[1].upper()):
                    yield Evidence(choice="test", value=f"{match[1]}={match[2]}", path=job.path, line=line.line)
            return

    def fetched(self) -> Iterator[Evidence]:
        """What FetchContent would bring from a forge."""
        for path, text in self.texts.items():
            for match in _FETCHED.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                note = "Debian's own is looked for first: a forge may be out of reach"
                yield Evidence(choice="dependency_steps", value=match[1], path=path, line=line, note=note)

    def one_big_test(self) -> bool:
        """Whether ctest would tell of one or two tests where executables hold many."""
        calls = [text for text in self.texts.values() for _ in re.findall(r"(?im)^\s*add_test\s*\(", text)]
        loops = [text for text in calls if re.search(r"(?i)\b(function|macro|foreach)\s*\(", text)]
        found = any(re.search(r"(?i)\b(gtest|catch|doctest)_(discover|add)_tests\s*\(", t) for t in self.texts.values())
        return len(calls) <= 2 and not loops and not found


def read_cmake(tree: Tree) -> CMake | None:
    """The CMake project at the root, else the one nearest to it that declares tests; None when there is none."""
    tops = sorted((p.count("/"), p) for p in tree.glob("*CMakeLists.txt") if posixpath.basename(p) == "CMakeLists.txt")
    for depth, path in tops:
        project = CMake(tree=tree, folder=posixpath.dirname(path))
        if depth <= 2 and re.search(r"(?i)\bproject\s*\(", tree.read(path)) and project.has_tests():
            return project
    return None
