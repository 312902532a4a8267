"""Where the tests of JVM projects are: source sets, names that Surefire takes in, and the canary beside them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import PurePosixPath

from languages.base import Canary
from languages.jvm.poms import Reactor, read_reactor
from languages.tree import Tree
from taskdb.records import BuildPlan

SURE_NAMES = ("**/Test*", "**/*Test", "**/*Tests", "**/*TestCase")
"""What Surefire takes in when a pom says nothing."""

_DEFINES = re.compile(
    r"^\s*@(?:org\.[\w.]+\.)?(Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|RunWith|Property|Theory|Suite\w*"
    r"|ArchTest|CartesianTest|Example)\b|\bextends\s+(junit\.framework\.)?TestCase\b"
    r"|\b(extends|with|:)\s+\w*(Suite|Spec|FunSuite|FlatSpec|WordSpec)\b",
    re.MULTILINE,
)
_UNIT = re.compile(r"(^|/)src/test/")
"""What Gradle's task `test` runs."""
_SUITE = re.compile(r"\bSuite\.class|@(\w*SuiteClasses|Suite|Select\w+)\b|\bstatic\s+([\w.]*\.)?Test\s+suite\(")
"""Files that only name the classes that hold tests."""
_ABSTRACT = re.compile(
    r"^(public\s+|sealed\s+)?abstract\s+(public\s+)?class\s+(\w+)|^(public\s+)?interface\s", re.MULTILINE
)


def in_test_folder(suffix: str) -> tuple[str, ...]:
    """Patterns of a language's tests and what lies beside them: source sets whose name speaks of tests."""
    return (
        r"(^|/)src/(test|it|[a-z][a-zA-Z]*Test|test[A-Z][a-zA-Z]*|[a-z]+-tests?)/",
        rf"^([^/]+/)?test/.*\.{suffix}$",
        rf"(^|/)javatests/.*\.{suffix}$",
    )


def test_file(suffix: str) -> str:
    """Regex of files in which tests are looked for."""
    return rf"^(?!(?:.*/)?src/main/)(?=.*(?:^|/)(?:src/(?:[\w-]*[tT]est[\w-]*|it)|tests?|javatests)/).*\.{suffix}$"


def defining_files(tree: Tree, suffix: str, plan: BuildPlan | None = None) -> list[str]:
    """Files that define tests; with a plan those of its modules that Surefire takes in."""
    pattern = re.compile(test_file(suffix))
    paths = sorted(path for path in tree.entries if pattern.search(path) and tree.is_file(path))
    found = [path for path, text in tree.read_many(paths).items() if _holds_tests(path, text)]
    if plan is None:
        return found
    if plan.test.framework == "gradle":
        starts = tuple(f"{one}/" if one else "" for one in plan.test.paths or (plan.test.folder,))
        return [path for path in found if _UNIT.search(path) and path.startswith(starts)]
    reactor = read_reactor(tree, tuple(plan.test.paths))
    if reactor is None:
        return found
    return [path for path in found if _takes_in(reactor, path, plan.test.paths)]


def _holds_tests(path: str, text: str) -> bool:
    """Whether the file defines tests in a class that can be run itself."""
    match = _ABSTRACT.search(text)
    abstract = match is not None and match[3] in (PurePosixPath(path).stem, None)
    return _DEFINES.search(text) is not None and not abstract and not _SUITE.search(text)


def _takes_in(reactor: Reactor, path: str, modules: Sequence[str]) -> bool:
    module = reactor.module_of(path)
    if module is None or (modules and module not in modules):
        return False
    inside = posixpath.relpath(path, module or ".")
    source = reactor.setting(module, "testSourceDirectory").rstrip("/")
    if not inside.startswith((f"{source}/",) if source else ("src/test/",)):
        return False
    inside = inside.rpartition(".")[0]
    included = _patterns(reactor, module, "include") or list(SURE_NAMES)
    excluded = _patterns(reactor, module, "exclude")
    return any(_matches(p, inside) for p in included) and not any(_matches(p, inside) for p in excluded)


def _patterns(reactor: Reactor, module: str, kind: str) -> list[str]:
    """Surefire's includes or excludes of the nearest pom that has any, without ends of names."""
    for pom in reactor.lineage(module):
        found = [
            re.sub(r"\.(java|kt|scala|class|groovy)$", "", pom.expand((node.text or "").strip()))
            for plugin in pom.plugins("maven-surefire-plugin")
            for node in plugin.findall(f"configuration/{kind}s/{kind}")
        ]
        if found:
            return [part.strip() for one in found for part in one.split(",")]
    return []


def _matches(pattern: str, path: str) -> bool:
    """Ant's patterns: `**/` is any folders, `*` anything but a slash; the source root does not count."""
    pattern = pattern.removeprefix("%regex[").removesuffix("]")
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex = "".join(words.get(part, re.escape(part)) for part in parts)
    return re.search(rf"(?:^|/){regex}$", path) is not None


def stub_folders(reactor: Reactor, modules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(folder of sources, folder of tests) of each module, from the tree's root."""
    for module in modules:
        main = reactor.setting(module, "sourceDirectory") or "src/main/java"
        test = reactor.setting(module, "testSourceDirectory") or "src/test/java"
        yield posixpath.normpath(posixpath.join(module, main)), posixpath.normpath(posixpath.join(module, test))


def _canary_name(files: Sequence[str]) -> str:
    named = [PurePosixPath(file) for file in files if file.endswith((".java", ".kt", ".scala"))]
    suffix = named[0].suffix if named else ".java"
    stems = [name.stem for name in named]
    for end in ("Test", "Tests", "TestCase", "IT", "Spec", "Suite"):
        if stems and all(stem.endswith(end) for stem in stems):
            return f'"Canary${{word}}{end}{suffix}"'
    if stems and all(stem.startswith("Test") for stem in stems):
        return f'"TestCanary${{word}}{suffix}"'
    return f'"Canary${{word}}Test{suffix}"'


CANARY = Canary(
    name=_canary_name,
    body=resources.files("languages.jvm").joinpath("canary.sh").read_text(encoding="utf-8"),
)
"""A class in the package and with the framework of its neighbours."""
