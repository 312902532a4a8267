"""Detection of tests in JVM projects: source sets, Surefire's file patterns, and the canary."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from languages.base import Canary, read_packaged_file
from languages.jvm import maven
from languages.jvm.poms import Reactor, read_reactor
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan

TEST_CLASS_NAMES = ("**/Test*", "**/*Test", "**/*Tests", "**/*TestCase")
"""Surefire's default includes."""

_DEFINES = re.compile(
    r"^\s*@(?:(?:org|kotlin)\.[\w.]+\.)?(Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|RunWith|Property|Theory|Suite\w*"
    r"|ArchTest|CartesianTest|Example)\b|\bextends\s+(junit\.framework\.)?TestCase\b"
    r"|\b(extends|with|:)\s+\w*(Suite|Spec|FunSuite|FlatSpec|WordSpec)\b",
    re.MULTILINE,
)
_UNIT = re.compile(r"(^|/)src/test/")
"""Matches the tests that Gradle's task `test` runs."""
_SUITE = re.compile(r"\bSuite\.class|@(\w*SuiteClasses|Suite|Select\w+)\b|\bstatic\s+([\w.]*\.)?Test\s+suite\(")
"""Matches suites, which only list classes with tests."""
_ABSTRACT = re.compile(
    r"^(public\s+|sealed\s+)?abstract\s+(public\s+)?class\s+(\w+)|^(public\s+)?interface\s", re.MULTILINE
)


def test_source_patterns(suffix: str) -> tuple[str, ...]:
    """Return the patterns of a language's tests and fixtures: source sets with `test` in their name."""
    return (
        r"(^|/)src/(test|it|[a-z][a-zA-Z]*Test|test[A-Z][a-zA-Z]*|[a-z]+-tests?)/",
        rf"^([^/]+/)?test/.*\.{suffix}$",
        rf"(^|/)javatests/.*\.{suffix}$",
    )


def test_file_pattern(suffix: str) -> str:
    """Return the regex of files that may define tests."""
    return rf"^(?!(?:.*/)?src/main/)(?=.*(?:^|/)(?:src/(?:[\w-]*[tT]est[\w-]*|it)|tests?|javatests)/).*\.{suffix}$"


def find_test_files(suffix: str, tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files that define tests; with a plan those of its modules that Surefire includes."""
    pattern = re.compile(test_file_pattern(suffix))
    paths = sorted(path for path in tree.entries if pattern.search(path) and tree.is_file(path))
    test_files = [path for path, text in tree.read_many(paths).items() if _holds_tests(path, text)]
    if plan is None:
        return test_files
    if plan.test.framework == "gradle" or maven.is_translated(plan.test.argv):
        prefixes = tuple(f"{folder}/" if folder else "" for folder in plan.test.paths or (plan.test.folder,))
        return [path for path in test_files if _UNIT.search(path) and path.startswith(prefixes)]
    reactor = read_reactor(tree, top=plan.test.folder, profiles=maven.read_profiles(plan.test.argv))
    if reactor is None:
        return test_files
    included = [path for path in test_files if _is_included(reactor, path, plan.test.paths)]
    if included:
        return included
    suites = [path for path in paths if path not in test_files and _is_included(reactor, path, plan.test.paths)]
    return [path for path in _list_members(tree, suites, paths) if path in test_files]


def _holds_tests(path: str, text: str) -> bool:
    """Return whether the file defines tests in a concrete class."""
    match = _ABSTRACT.search(text)
    abstract = match is not None and match[3] in (PurePosixPath(path).stem, None)
    return _DEFINES.search(text) is not None and not abstract and not _SUITE.search(text)


def _list_members(tree: SourceTree, suites: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return the files among `paths` of the classes that suites list, also by other suites, sorted.

    A project whose own tests are run by suites, such as JUnit's, includes nothing else.
    """
    files = {PurePosixPath(path).stem: path for path in paths}
    members, remaining = set(suites), list(suites)
    while remaining:
        text = tree.read(remaining.pop())
        names = re.findall(r"\b(\w+)(?:\.class\b|\.suite\()", text) if _SUITE.search(text) else []
        new = {files[name] for name in names if name in files} - members
        members |= new
        remaining += sorted(new)
    return sorted(members)


def _is_included(reactor: Reactor, path: str, modules: Sequence[str]) -> bool:
    module = reactor.find_module(path)
    if module is None or (modules and module not in modules):
        return False
    relative = posixpath.relpath(path, module or ".")
    source = reactor.find_setting(module, "testSourceDirectory").rstrip("/")
    if not relative.startswith((f"{source}/",) if source else ("src/test/",)):
        return False
    relative = relative.rpartition(".")[0]
    included = _read_surefire_patterns(reactor, module, "include") or list(TEST_CLASS_NAMES)
    excluded = _read_surefire_patterns(reactor, module, "exclude")
    return any(_matches_ant_pattern(p, relative) for p in included) and not any(
        _matches_ant_pattern(p, relative) for p in excluded
    )


def _read_surefire_patterns(reactor: Reactor, module: str, kind: str) -> list[str]:
    """Return Surefire's includes or excludes of the nearest pom that has any, as paths without suffixes."""
    for pom in reactor.list_ancestors(module):
        patterns = [
            pom.expand((node.text or "").strip())
            for plugin in pom.find_plugins("maven-surefire-plugin")
            for node in plugin.findall(f"configuration/{kind}s/{kind}")
        ]
        if patterns:
            return [_make_path(part.strip()) for pattern in patterns for part in pattern.split(",")]
    return []


def _make_path(pattern: str) -> str:
    """Return a pattern of Surefire as a pattern of paths; it may be a pattern of class names, such as `a.b.**`."""
    pattern = re.sub(r"\.(java|kt|scala|class|groovy)$", "", pattern)
    return pattern if "/" in pattern or pattern.startswith("%regex[") else pattern.replace(".", "/")


def _matches_ant_pattern(pattern: str, path: str) -> bool:
    """Return whether an Ant pattern matches: `**/` any folders, `*` anything but a slash, relative to any folder."""
    pattern = pattern.removeprefix("%regex[").removesuffix("]")
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex = "".join(words.get(part, re.escape(part)) for part in parts)
    return re.search(rf"(?:^|/){regex}$", path) is not None


def _name_canary(files: Sequence[str]) -> str:
    sources = [PurePosixPath(file) for file in files if file.endswith((".java", ".kt", ".scala"))]
    suffix = sources[0].suffix if sources else ".java"
    stems = [name.stem for name in sources]
    for ending in ("Test", "Tests", "TestCase", "IT", "Spec", "Suite"):
        if stems and all(stem.endswith(ending) for stem in stems):
            return f'"Canary${{word}}{ending}{suffix}"'
    if stems and all(stem.startswith("Test") for stem in stems):
        return f'"TestCanary${{word}}{suffix}"'
    return f'"Canary${{word}}Test{suffix}"'


CANARY = Canary(
    name=_name_canary,
    body=read_packaged_file("languages.jvm", "canary.sh"),
)
"""A test class in the package and framework of its neighbours."""
