"""Parser of Maven poms, without Maven: modules, source folders, language levels, snapshot dependencies."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree as ET

from languages.source_tree import SourceTree

NOT_MODULES = re.compile(r"(^|/)(src|target|archetype-resources|test-projects?|examples?/[^/]+/src)/")
"""Folders whose poms are test data or templates."""

_PROPERTY = re.compile(r"\$\{([^}]+)\}")
_NAMESPACE = re.compile(r"^\{[^}]*\}")


@dataclass(frozen=True)
class Pom:
    """One pom.xml; `folder` is empty for the root of the tree."""

    folder: str
    root: ET.Element
    text: str

    @property
    def path(self) -> str:
        """Path relative to the root of the tree."""
        return posixpath.join(self.folder, "pom.xml")

    def find_text(self, *names: str) -> str:
        """Return the text of an element, given its path; empty if it is missing."""
        element = self.root.find("/".join(names))
        return (element.text or "").strip() if element is not None else ""

    @cached_property
    def properties(self) -> dict[str, str]:
        """Properties of the pom, and the implicit version properties."""
        declared = {node.tag: (node.text or "").strip() for node in self.root.findall("properties/*")}
        version = self.find_text("version") or self.find_text("parent", "version")
        return declared | {"project.version": version, "revision": declared.get("revision", version)}

    @property
    def coordinates(self) -> tuple[str, str]:
        """(group, artifact)."""
        return self.find_text("groupId") or self.find_text("parent", "groupId"), self.find_text("artifactId")

    def expand(self, text: str) -> str:
        """Return the text with the pom's properties substituted; unknown properties remain."""
        for _ in range(5):
            text = _PROPERTY.sub(lambda m: self.properties.get(m[1], m[0]), text)
        return text

    def list_modules(self) -> list[str]:
        """Return the folders of modules, including those of profiles, relative to the root of the tree."""
        names = [node.text or "" for node in self.root.iter("module")]
        return [posixpath.normpath(posixpath.join(self.folder, name.strip())) for name in names if name.strip()]

    def find_plugins(self, artifact: str) -> Iterator[ET.Element]:
        """Yield the configurations of a plugin in build, management and profiles."""
        for plugin in self.root.iter("plugin"):
            if (plugin.findtext("artifactId") or "").strip() == artifact:
                yield plugin

    def find_line(self, needle: str) -> int:
        """Return the 1-based line of the first occurrence of `needle`; 0 if there is none."""
        offset = self.text.find(needle)
        return self.text.count("\n", 0, offset) + 1 if offset >= 0 else 0


def read_pom(tree: SourceTree, path: str) -> Pom | None:
    """Return the pom at `path`; None if the file is not a pom."""
    text = tree.read(path)
    if "<!ENTITY" in text:
        return None
    try:
        root = ET.fromstring(text.encode())  # noqa: S314 - entities are rejected above
    except ET.ParseError:
        return None
    for node in root.iter():
        if isinstance(node.tag, str):
            node.tag = _NAMESPACE.sub("", node.tag)
    return Pom(folder=posixpath.dirname(path), root=root, text=text) if root.tag == "project" else None


@dataclass(frozen=True)
class Reactor:
    """The poms that one Maven invocation builds; folder -> pom, the top one first."""

    top: str
    poms: Mapping[str, Pom]

    def list_code_modules(self) -> list[str]:
        """Return the folders that contain code, sorted."""
        return sorted(folder for folder, pom in self.poms.items() if pom.find_text("packaging") != "pom")

    def find_module(self, path: str) -> str | None:
        """Return the innermost module that contains a file; None if there is none."""
        folder = posixpath.dirname(path)
        while True:
            if folder in self.poms:
                return folder
            if not folder:
                return None
            folder = posixpath.dirname(folder)

    def list_ancestors(self, folder: str) -> list[Pom]:
        """Return a module's pom and its ancestors in the tree, nearest first."""
        ancestors, pom = [], self.poms.get(folder)
        while pom is not None and pom not in ancestors:
            ancestors.append(pom)
            pom = self._find_parent(pom)
        return ancestors

    def _find_parent(self, pom: Pom) -> Pom | None:
        key = (pom.find_text("parent", "groupId"), pom.find_text("parent", "artifactId"))
        return next((other for other in self.poms.values() if other.coordinates == key), None) if any(key) else None

    def find_setting(self, folder: str, name: str) -> str:
        """Return a build setting (`testSourceDirectory`) of the nearest pom that has it; empty if variable."""
        for pom in self.list_ancestors(folder):
            value = (
                pom.expand(pom.find_text("build", name)).replace("${project.basedir}/", "").replace("${basedir}/", "")
            )
            if value:
                return "" if "$" in value or value.startswith(("/", "..")) else value
        return ""

    def list_snapshots(self) -> list[tuple[str, str, str, Pom]]:
        """Return (group, artifact, version, requiring pom) of snapshots that are not in the tree."""
        own = {pom.coordinates for pom in self.poms.values()}
        snapshots: dict[tuple[str, str, str], Pom] = {}
        for pom in self.poms.values():
            for node in [*self.find_elements(pom, "parent"), *self.find_elements(pom, ".//dependency")]:
                group, artifact, version = (
                    self.expand_text(pom, node.findtext(n) or "") for n in ("groupId", "artifactId", "version")
                )
                if version.endswith("-SNAPSHOT") and (group, artifact) not in own and "$" not in group + artifact:
                    snapshots.setdefault((group, artifact, version), pom)
        return [(*key, pom) for key, pom in snapshots.items()]

    @staticmethod
    def find_elements(pom: Pom, path: str) -> list[ET.Element]:
        """Return the elements below a pom's root."""
        return pom.root.findall(path)

    def expand_text(self, pom: Pom, text: str) -> str:
        """Return a text with the properties of a pom and its ancestors substituted."""
        for ancestor in self.list_ancestors(pom.folder):
            text = ancestor.expand(text.strip())
        return text


def read_reactor(tree: SourceTree, changed_paths: tuple[str, ...] = ()) -> Reactor | None:
    """Return the reactor of the root, else of the folder with most changed files; None without poms."""
    folders = sorted(posixpath.dirname(p) for p in tree.glob("*pom.xml") if posixpath.basename(p) == "pom.xml")
    folders = [folder for folder in folders if not NOT_MODULES.search(f"{folder}/")]
    tops = [f for f in folders if not any(f != o and (not o or f.startswith(f"{o}/")) for o in folders)]
    if not tops:
        return None
    top = max(tops, key=lambda f: (sum(path.startswith(f"{f}/") or not f for path in changed_paths), -len(f)))
    poms: dict[str, Pom] = {}
    queue = [top]
    while queue:
        folder = queue.pop(0)
        path = folder if folder.endswith(".xml") else posixpath.join(folder, "pom.xml")
        folder = posixpath.dirname(path)
        if folder in poms or not tree.is_file(path) or posixpath.basename(path) != "pom.xml":
            continue
        if pom := read_pom(tree, path):
            poms[folder] = pom
            queue += ["" if module == "." else module for module in pom.list_modules()]
    return Reactor(top=top, poms=poms) if poms else None
