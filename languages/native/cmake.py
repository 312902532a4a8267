"""Parser of CMake files: tests, the options that enable them, and content fetched from forges."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from languages.native.submodules import PackagedLibrary, find_packaged_library
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import Evidence

_OPTION = re.compile(r"^\s*(?:cmake_dependent_)?option\s*\(\s*(\w+)", re.IGNORECASE | re.MULTILINE)
_SET_CACHE = re.compile(r"^\s*set\s*\(\s*(\w+)\s+\S+\s+CACHE\s+BOOL", re.IGNORECASE | re.MULTILINE)
_TEST_OPTION = re.compile(
    r"(^|_|[a-z])(BUILD_?)?(UNIT_?)?(TESTS?|TESTING|Tests?|UnitTests?)$|^(BUILD|ENABLE|WITH)_(UNIT_?)?TESTS?(_|$)"
)
_DEVELOPMENT = re.compile(r"_DEVELOPMENT_BUILD$|_DEV(ELOPER)?_MODE$")
_EXCLUDED_OPTIONS = re.compile(
    r"FUZZ|BENCH|PERF|PEDANTIC|EXTRA_TEST|PARSE_CATCH|COVERAGE|INSTALL|CUDA|SYSTEM|EXTERNAL|DOWNLOAD|SANITIZ|VALGRIND|PYTHON|JAVA|NETWORK|STRESS|EXPENSIVE"
    r"|CONFIGURE_TEST|HELPER_TEST|MODULE_TEST|FIND_PACKAGE|ADD_SUBDIRECTORY|ONLINE|COMPILE_FAIL"
)
_DISABLES = re.compile(r"DISABLE|WITHOUT|SKIP|(^|_)NO_")
_OFF = re.compile(
    r"(^|_)(WERROR|WARNINGS?_AS_ERRORS?|FORMAT_SOURCE|CLANG_TIDY|CPPCHECK|(BUILD|ENABLE|WITH|INSTALL)_(BENCH(MARKS?|ES)?|DOCS?|MAN_?(PAGES?)?|FUZZ(ERS?|ING)?))$"
)
_CI_OPTION = re.compile(r"\s-D\s*([A-Za-z_]\w*)(?::\w+)?=(ON|OFF|TRUE|FALSE|YES|NO|1|0)\b", re.IGNORECASE)
_FETCHED = re.compile(r"\bFetchContent_Declare\s*\(\s*([\w.-]+)([^)]*)", re.IGNORECASE)
_ADDRESS = re.compile(r"\b(?:GIT_REPOSITORY|URL)\s+[\"']?([^\s\"')]+)")
_TESTS = re.compile(r"^\s*(enable_testing\s*\(|include\s*\(\s*CTest\s*\)|add_test\s*\()", re.IGNORECASE | re.MULTILINE)
_VARIABLE = r"\$\{\w+\}"
_TEST_PROGRAM = re.compile(
    r"^\s*(?i:add_executable)\s*\(\s*[\"']?"
    rf"((?:(?:[\w.-]|{_VARIABLE})*[_-])?(?:[uU]nit)?[tT]ests?(?:[_-](?:[\w.-]|{_VARIABLE})*)?"
    rf"|[tT]est\w*|(?:\w|{_VARIABLE})+Tests?)[\"']?\s",
    re.MULTILINE,
)
_OTHER_PROJECTS = re.compile(
    r"(^|/)(third_?party|3rd_?party|vendor|external|extern|deps?|examples?|g(oogle)?(test|mock)[-.\d]*)/"
)
"""Matches paths of projects that are copied into the tree, and of examples."""
_PROJECT = re.compile(r"^\s*project\s*\(", re.IGNORECASE | re.MULTILINE)
_SUBDIRECTORY = re.compile(r"^\s*add_subdirectory\s*\(", re.IGNORECASE | re.MULTILINE)
_ADDED_FOLDER = re.compile(r"\badd_subdirectory\s*\(\s*\"?([^\s\")]+)", re.IGNORECASE)
_MINIMUM = re.compile(r"cmake_minimum_required\s*\(\s*VERSION\s+(\d+)\.(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class CMakeProject:
    """The CMake project of a tree; `folder` contains its top CMakeLists.txt, empty for the root."""

    tree: SourceTree
    folder: str

    @property
    def top_file(self) -> str:
        """Path of the top CMakeLists.txt."""
        return posixpath.join(self.folder, "CMakeLists.txt")

    @cached_property
    def cmake_files(self) -> dict[str, str]:
        """Path -> text of the project's own CMake files."""
        start = f"{self.folder}/" if self.folder else ""
        paths = [
            path
            for path in sorted(self.tree.entries)
            if path.startswith(start)
            and re.search(r"(^|/)CMakeLists\.txt$|\.cmake$", path)
            and not _OTHER_PROJECTS.search(path)
        ]
        files = self.tree.read_many(paths)
        for folder in self._list_separate_projects(files):
            files = {path: text for path, text in files.items() if not path.startswith(f"{folder}/")}
        return files

    def _list_separate_projects(self, files: Mapping[str, str]) -> list[str]:
        """Return the folders of projects in this one's folder that it does not add, as those built by themselves."""
        added = [match[1] for text in files.values() for match in _ADDED_FOLDER.finditer(text)]
        if any(re.search(r"\$\{[^}]*\}$", argument) for argument in added):
            return []
        names = {posixpath.basename(argument.rstrip("/")) for argument in added}
        return [
            folder
            for path, text in files.items()
            if path != self.top_file
            and posixpath.basename(path) == "CMakeLists.txt"
            and _PROJECT.search(text)
            and posixpath.basename(folder := posixpath.dirname(path)) not in names
        ]

    def list_project_names(self) -> set[str]:
        """Return the lower-case names in `project()` calls."""
        pattern = re.compile(r"^\s*project\s*\(\s*[\"']?([\w.-]+)", re.IGNORECASE | re.MULTILINE)
        return {match[1].lower() for text in self.cmake_files.values() for match in pattern.finditer(text)}

    def has_tests(self) -> bool:
        """Return whether the project registers tests with ctest."""
        return any(_TESTS.search(text) for text in self.cmake_files.values())

    def find_test_program(self) -> Evidence | None:
        """Return the first executable that is named for tests."""
        for path, text in self.cmake_files.items():
            if match := _TEST_PROGRAM.search(text):
                line = text.count("\n", 0, match.start(1)) + 1
                return Evidence(choice="test", value=match[1], path=path, line=line, note="ctest has no list of tests")
        return None

    def minimum_version(self) -> tuple[int, int]:
        """Return the minimum CMake version."""
        match = _MINIMUM.search(self.cmake_files.get(self.top_file, ""))
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def detect_options(self) -> Iterator[Evidence]:
        """Yield `NAME=ON` for options of tests, and `NAME=OFF` for style checks, benchmarks and documentation."""
        yield Evidence(choice="test", value="BUILD_TESTING=ON", path=self.top_file, line=0)
        names = {"BUILD_TESTING"}
        for path, text in self.cmake_files.items():
            for match in [*_OPTION.finditer(text), *_SET_CACHE.finditer(text)]:
                name, line = match[1], text.count("\n", 0, match.start(1)) + 1
                enables_tests = _TEST_OPTION.search(name) or _DEVELOPMENT.search(name)
                is_optional = _OFF.search(name)
                if (
                    name in names
                    or not (enables_tests or is_optional)
                    or (not is_optional and _EXCLUDED_OPTIONS.search(name.upper()))
                ):
                    continue
                names.add(name)
                value = "OFF" if bool(is_optional) != bool(_DISABLES.search(name.upper())) else "ON"
                yield Evidence(choice="test", value=f"{name}={value}", path=path, line=line)

    def read_ci_options(self) -> Iterator[Evidence]:
        """Yield `NAME=VALUE` of the project's options as set by the first CI job that calls CMake."""
        options = {match[1] for text in self.cmake_files.values() for match in _OPTION.finditer(text)}
        for job in read_jobs(self.tree):
            lines = [] if job.is_auxiliary else [line for line in job.lines if re.search(r"\bcmake\b", line.text)]
            matches = [(match, line) for line in lines for match in _CI_OPTION.finditer(line.text)]
            if not matches:
                continue
            for match, line in matches:
                if match[1] in options and not _EXCLUDED_OPTIONS.search(match[1].upper()):
                    yield Evidence(choice="test", value=f"{match[1]}={match[2]}", path=job.path, line=line.line)
            return

    def list_fetched_content(self) -> Iterator[Evidence]:
        """Yield the content that FetchContent would download from a forge."""
        for path, text in self.cmake_files.items():
            for match in _FETCHED.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                note = "Debian's package takes precedence: a forge may be unreachable"
                yield Evidence(choice="dependency_steps", value=match[1], path=path, line=line, note=note)

    def map_fetched_libraries(self) -> dict[str, PackagedLibrary]:
        """Return name -> library of the fetched content that a package of Debian can replace, but not by its name.

        Content of the name that `find_package` uses is found by FETCHCONTENT_TRY_FIND_PACKAGE_MODE.
        """
        libraries = {}
        for text in self.cmake_files.values():
            for name, declaration in _FETCHED.findall(text):
                address = _ADDRESS.search(declaration)
                library = find_packaged_library(address[1] if address else "", name)
                if library and library.config.lower() != name.lower():
                    libraries[name] = library
        return libraries

    def has_single_test_executable(self) -> bool:
        """Return whether ctest would report only one or two tests although the executables contain many."""
        calls = [text for text in self.cmake_files.values() for _ in re.findall(r"(?im)^\s*add_test\s*\(", text)]
        loops = [text for text in calls if re.search(r"(?i)\b(function|macro|foreach)\s*\(", text)]
        return len(calls) <= 2 and not loops and not self.discovers_tests()

    def discovers_tests(self) -> bool:
        """Return whether ctest lists each test of its executables."""
        pattern = re.compile(r"(?i)\b(gtest|catch|doctest)_(discover|add)_tests\s*\(|\bparseandaddcatchtests\s*\(")
        return any(pattern.search(text) for text in self.cmake_files.values())


def read_cmake(tree: SourceTree) -> CMakeProject | None:
    """Return the CMake project at the root, else the nearest that declares tests; None if there is none."""
    return next((project for project in _list_projects(tree) if project.has_tests()), None)


def read_cmake_with_programs(tree: SourceTree) -> CMakeProject | None:
    """Return the first CMake project with an executable that is named for tests."""
    return next((project for project in _list_projects(tree) if project.find_test_program()), None)


def _list_projects(tree: SourceTree) -> Iterator[CMakeProject]:
    tops = sorted((p.count("/"), p) for p in tree.glob("*CMakeLists.txt") if posixpath.basename(p) == "CMakeLists.txt")
    for depth, path in tops:
        if depth > 2 or _OTHER_PROJECTS.search(path):
            continue
        text = tree.read(path)
        if _PROJECT.search(text) or (not depth and _SUBDIRECTORY.search(text)):  # project() is optional for CMake
            yield CMakeProject(tree=tree, folder=posixpath.dirname(path))
