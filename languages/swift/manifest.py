"""Package.swift, the manifest of a Swift package: the facts that a plan needs of it. Read as text, never executed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from languages.facts import SourcedValue
from languages.source_tree import SourceTree

MANIFEST = "Package.swift"
LOCK_FILE = "Package.resolved"
_MANIFEST_PATH = re.compile(r"(^|/)Package(@swift-[\d.]+)?\.swift$")
_TOOLS = re.compile(r"^\s*//\s*swift-tools-version\s*:\s*(?P<version>\d+(\.\d+)*)", re.IGNORECASE)
_REMOTE = re.compile(r"""\.package\s*\((?:\s*name\s*:\s*"[^"]*"\s*,)?\s*(?:url|id)\s*:\s*"(?P<place>[^"]+)\"""")
_LOCAL = re.compile(r"""\.package\s*\((?:\s*name\s*:\s*"[^"]*"\s*,)?\s*path\s*:\s*"(?P<place>[^"]+)\"""")
_APT = re.compile(r"\.apt\s*\(\s*\[(?P<names>[^\]]*)\]")
_NAME = re.compile(r"""\bPackage\s*\(\s*name\s*:\s*"(?P<name>[^"]+)\"""")
_COMMENT = re.compile(r"(?<![:\"/])//[^\n]*|/\*.*?\*/", re.DOTALL)
"""Matches comments, but not the `//` of an address."""


class PackageManifest:
    """The manifest in a folder of the tree, relative to its root."""

    def __init__(self, tree: SourceTree, folder: str) -> None:
        self.tree = tree
        self.folder = folder
        self.path = posixpath.join(folder, MANIFEST)
        text = tree.read(self.path)
        self.first_line = text.split("\n", 1)[0]
        self.text = _blank_comments(text)

    @property
    def name(self) -> str:
        """Name of the package; empty if it is not literal."""
        match = _NAME.search(self.text)
        return match["name"] if match else ""

    @property
    def tools_version(self) -> SourcedValue | None:
        """The oldest version of Swift that can read the manifest; its comment must be the first line."""
        match = _TOOLS.match(self.first_line)
        return SourcedValue(text=match["version"], path=self.path, line=1) if match else None

    @property
    def has_tests(self) -> bool:
        """Whether the package has a target of tests."""
        return re.search(r"\.testTarget\s*\(", self.text) is not None

    def list_remotes(self) -> Iterator[SourcedValue]:
        """Yield the git URL or registry identity of each dependency that is not in the tree."""
        return self._find(_REMOTE)

    def list_system_packages(self) -> Iterator[SourcedValue]:
        """Yield the Debian packages that system libraries name as their providers."""
        for match in _APT.finditer(self.text):
            line = self._line(match.start())
            for name in re.findall(r'"([a-z0-9][a-z0-9.+-]+)"', match["names"]):
                yield SourcedValue(text=name, path=self.path, line=line)

    def list_local_folders(self) -> Iterator[str]:
        """Yield the folders of the tree with packages that this package depends on."""
        for place in self._find(_LOCAL):
            folder = posixpath.normpath(posixpath.join(self.folder, place.text))
            if not folder.startswith(("..", "/")):
                yield "" if folder == "." else folder

    def _find(self, pattern: re.Pattern[str]) -> Iterator[SourcedValue]:
        for match in pattern.finditer(self.text):
            yield SourcedValue(text=match["place"], path=self.path, line=self._line(match.start("place")))

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1


def _blank_comments(text: str) -> str:
    """Return the text without comments, each line at its number."""
    return _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def is_manifest(path: str) -> bool:
    """Return whether a path is a manifest, or a manifest for certain versions of Swift."""
    return _MANIFEST_PATH.search(path) is not None


def list_packages(tree: SourceTree, folder: str) -> list[PackageManifest]:
    """Return the package in a folder and the packages of the tree that it depends on, each once."""
    folders, known = [folder], {folder}
    packages: list[PackageManifest] = []
    while folders:
        packages.append(PackageManifest(tree, folders.pop()))
        for other in packages[-1].list_local_folders():
            if other not in known and tree.is_file(posixpath.join(other, MANIFEST)):
                known.add(other)
                folders.append(other)
    return packages
