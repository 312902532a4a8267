"""Project files of MSBuild: which of them contain tests, and for which frameworks. Read as text, never evaluated."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from languages.facts import SourcedValue, find_line
from languages.scripting.versions import version_key
from languages.source_tree import SourceTree

_TEST_PACKAGE = re.compile(
    r"""<PackageReference\s[^>]*\b(?:Include|Update)\s*=\s*"(?P<name>Microsoft\.NET\.Test\.Sdk|xunit(?:\.core|\.v3[\w.-]*)?|NUnit|"""
    r"""MSTest(?:\.TestFramework)?)\"""",
    re.IGNORECASE,
)
_IS_TEST = re.compile(r"<IsTestProject[^>]*>\s*(true|false)\s*<", re.IGNORECASE)
_SDK = re.compile(r"""<Project\s[^>]*\bSdk\s*=\s*"MSTest\.Sdk""", re.IGNORECASE)
_TARGET = re.compile(r"<TargetFrameworks?(?:\s[^>]*)?>(?P<names>[^<]+)<")
_FRAMEWORK = re.compile(r"(net|netcoreapp)(?P<version>\d+\.\d+)$")
"""Matches frameworks that run on Linux; the others are .NET Framework (net48) or for one system (net8.0-windows)."""
_IMPORT = re.compile(r"""<Import\s[^>]*\bProject\s*=\s*"(?P<place>[^"$]+)\"""")
_PROPERTY = re.compile(r"^\$\((?P<name>\w+)\)$")
_SHARED = ("Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props")
_INPUT = re.compile(
    r"(^|/)([^/]+\.(sln|slnx|csproj|fsproj|vbproj|props|targets|ruleset|snk)|nuget\.config|packages\.lock\.json|global\.json)$",
    re.IGNORECASE,
)
_EXCLUDED = re.compile(r"(^|/)(bin|obj|node_modules|TestAssets|TestData|Fixtures?|[Ss]amples?|[Tt]emplates?)/")


class TestProject:
    """A project file with tests."""

    def __init__(self, tree: SourceTree, path: str) -> None:
        self.path = path
        self.folder = posixpath.dirname(path)
        self._own = (path, *_list_imported(tree, path))
        self._texts = {name: tree.read(name) for name in (*self._own, *_list_shared(tree, self.folder))}

    @property
    def has_tests(self) -> bool:
        """Whether the project itself is one of tests, or the files that it shares with its neighbours make it one."""
        own = "\n".join(self._texts[path] for path in self._own)
        if mark := _IS_TEST.search(own):
            return mark[1].lower() == "true"
        if _SDK.search(own) or _TEST_PACKAGE.search(own):
            return True
        is_named = re.search(r"tests?$", posixpath.basename(self.path).removesuffix(".csproj"), re.IGNORECASE)
        return is_named is not None and any(_TEST_PACKAGE.search(text) for text in self._texts.values())

    @property
    def sdk_marker(self) -> SourcedValue:
        """The package or property that makes it a project of tests."""
        for path, text in self._texts.items():
            if match := _TEST_PACKAGE.search(text):
                return SourcedValue(text=match["name"], path=path, line=find_line(text, match[0]))
        return SourcedValue(text="IsTestProject", path=self.path)

    def find_framework(self) -> SourcedValue | None:
        """Return the newest target framework that runs on Linux; None if there is none."""
        for path, text in self._texts.items():
            for match in _TARGET.finditer(text):
                names = [self._resolve(name.strip()) for name in match["names"].split(";")]
                names = [name for part in names for name in part.split(";") if _FRAMEWORK.match(name)]
                if names:
                    best = max(names, key=lambda name: version_key(parse_framework_version(name)))
                    return SourcedValue(text=best, path=path, line=text.count("\n", 0, match.start()) + 1)
        return None

    def _resolve(self, name: str) -> str:
        """Return the value of `$(Property)`, as far as it is a literal in one of the files; other names themselves."""
        if not (reference := _PROPERTY.match(name)):
            return name
        literal = re.compile(rf"<{reference['name']}(?:\s[^>]*)?>\s*([^<$]+?)\s*<")
        return next((found[1] for text in self._texts.values() if (found := literal.search(text))), name)


def parse_framework_version(name: str) -> str:
    """Return `8.0` for `net8.0`."""
    match = _FRAMEWORK.match(name)
    return match["version"] if match else ""


def _list_imported(tree: SourceTree, path: str) -> list[str]:
    """Return the files of the tree that a project imports by a literal path."""
    places = [found["place"].replace("\\", "/") for found in _IMPORT.finditer(tree.read(path))]
    paths = [posixpath.normpath(posixpath.join(posixpath.dirname(path), place)) for place in places]
    return [one for one in paths if tree.is_file(one)]


def _list_shared(tree: SourceTree, folder: str) -> Iterator[str]:
    """Yield the files that MSBuild imports from the folder and those above it, the nearest of each name."""
    for name in _SHARED:
        current = folder
        while True:
            path = posixpath.join(current, name)
            if tree.is_file(path):
                yield path
            if not current:
                break
            current = posixpath.dirname(current)


def list_test_projects(tree: SourceTree) -> list[TestProject]:
    """Return the projects of tests in C#, by path."""
    paths = sorted(path for path in tree.entries if path.endswith(".csproj") and not _EXCLUDED.search(path))
    return [project for path in paths if (project := TestProject(tree, path)).has_tests]


def list_inputs(tree: SourceTree) -> list[str]:
    """Return the files from which NuGet resolves packages, sorted."""
    return sorted(path for path in tree.entries if _INPUT.search(path))
