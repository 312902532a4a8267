"""Maven's poms as far as they can be read without Maven: modules, source folders, levels, what is not in the tree."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree as ET

from languages.tree import Tree

NOT_MODULES = re.compile(r"(^|/)(src|target|archetype-resources|test-projects?|examples?/[^/]+/src)/")
"""Folders whose poms are data of tests and templates."""

_PROPERTY = re.compile(r"\$\{([^}]+)\}")
_NAMESPACE = re.compile(r"^\{[^}]*\}")


@dataclass(frozen=True)
class Pom:
    """One pom.xml; `folder` is its folder, empty for the tree's root."""

    folder: str
    root: ET.Element
    text: str

    @property
    def path(self) -> str:
        """Path from the tree's root."""
        return posixpath.join(self.folder, "pom.xml")

    def value(self, *names: str) -> str:
        """Text of an element by its path, empty when it is not there."""
        found = self.root.find("/".join(names))
        return (found.text or "").strip() if found is not None else ""

    @cached_property
    def properties(self) -> dict[str, str]:
        """Its own properties, and what Maven calls its version."""
        said = {node.tag: (node.text or "").strip() for node in self.root.findall("properties/*")}
        version = self.value("version") or self.value("parent", "version")
        return said | {"project.version": version, "revision": said.get("revision", version)}

    @property
    def key(self) -> tuple[str, str]:
        """(group, artifact)."""
        return self.value("groupId") or self.value("parent", "groupId"), self.value("artifactId")

    def expand(self, text: str) -> str:
        """The text with its own properties put in; unknown ones stay."""
        for _ in range(5):
            text = _PROPERTY.sub(lambda m: self.properties.get(m[1], m[0]), text)
        return text

    def modules(self) -> list[str]:
        """Folders of its modules, also of those that only a profile names, as paths from the tree's root."""
        named = [node.text or "" for node in self.root.iter("module")]
        return [posixpath.normpath(posixpath.join(self.folder, name.strip())) for name in named if name.strip()]

    def plugins(self, artifact: str) -> Iterator[ET.Element]:
        """The plugin's entries, in build, management and profiles."""
        for plugin in self.root.iter("plugin"):
            if (plugin.findtext("artifactId") or "").strip() == artifact:
                yield plugin

    def line(self, needle: str) -> int:
        """1-based line in which `needle` first stands; 0 when it doesn't."""
        at = self.text.find(needle)
        return self.text.count("\n", 0, at) + 1 if at >= 0 else 0


def read_pom(tree: Tree, path: str) -> Pom | None:
    """The pom at `path`; None when it is none."""
    text = tree.read(path)
    if "<!ENTITY" in text:
        return None
    try:
        root = ET.fromstring(text.encode())  # noqa: S314 - entities are refused above
    except ET.ParseError:
        return None
    for node in root.iter():
        if isinstance(node.tag, str):
            node.tag = _NAMESPACE.sub("", node.tag)
    return Pom(folder=posixpath.dirname(path), root=root, text=text) if root.tag == "project" else None


@dataclass(frozen=True)
class Reactor:
    """The poms that one call of Maven builds together; folder -> pom, the top first."""

    top: str
    poms: Mapping[str, Pom]

    def modules(self) -> list[str]:
        """Folders that hold code, sorted."""
        return sorted(folder for folder, pom in self.poms.items() if pom.value("packaging") != "pom")

    def module_of(self, path: str) -> str | None:
        """The innermost module in whose folder a file lies."""
        folder = posixpath.dirname(path)
        while True:
            if folder in self.poms:
                return folder
            if not folder:
                return None
            folder = posixpath.dirname(folder)

    def lineage(self, folder: str) -> list[Pom]:
        """A module's pom and the poms above it in the tree, the nearest first."""
        found, pom = [], self.poms.get(folder)
        while pom is not None and pom not in found:
            found.append(pom)
            pom = self._parent(pom)
        return found

    def _parent(self, pom: Pom) -> Pom | None:
        key = (pom.value("parent", "groupId"), pom.value("parent", "artifactId"))
        return next((other for other in self.poms.values() if other.key == key), None) if any(key) else None

    def setting(self, folder: str, name: str) -> str:
        """A build setting (`testSourceDirectory`) of the nearest pom that has it, without variables; else empty."""
        for pom in self.lineage(folder):
            said = pom.expand(pom.value("build", name)).replace("${project.basedir}/", "").replace("${basedir}/", "")
            if said:
                return "" if "$" in said or said.startswith(("/", "..")) else said
        return ""

    def snapshots(self) -> list[tuple[str, str, str, Pom]]:
        """(group, artifact, version, who asks) of parents and dependencies that are snapshots and not in the tree."""
        own = {pom.key for pom in self.poms.values()}
        found: dict[tuple[str, str, str], Pom] = {}
        for pom in self.poms.values():
            for node in [*self.root_parts(pom, "parent"), *self.root_parts(pom, ".//dependency")]:
                group, artifact, version = (
                    self.expanded(pom, node.findtext(n) or "") for n in ("groupId", "artifactId", "version")
                )
                if version.endswith("-SNAPSHOT") and (group, artifact) not in own and "$" not in group + artifact:
                    found.setdefault((group, artifact, version), pom)
        return [(*key, pom) for key, pom in found.items()]

    @staticmethod
    def root_parts(pom: Pom, path: str) -> list[ET.Element]:
        """The elements below a pom's root."""
        return pom.root.findall(path)

    def expanded(self, pom: Pom, text: str) -> str:
        """A text with the properties of a pom and of those above it."""
        for above in self.lineage(pom.folder):
            text = above.expand(text.strip())
        return text


def read_reactor(tree: Tree, touched: tuple[str, ...] = ()) -> Reactor | None:
    """The reactor of the tree's root; without a pom there, of the folder that holds most of the touched files.

    None when there is no pom.
    """
    folders = sorted(posixpath.dirname(p) for p in tree.glob("*pom.xml") if posixpath.basename(p) == "pom.xml")
    folders = [folder for folder in folders if not NOT_MODULES.search(f"{folder}/")]
    tops = [f for f in folders if not any(f != o and (not o or f.startswith(f"{o}/")) for o in folders)]
    if not tops:
        return None
    top = max(tops, key=lambda f: (sum(path.startswith(f"{f}/") or not f for path in touched), -len(f)))
    poms: dict[str, Pom] = {}
    waiting = [top]
    while waiting:
        folder = waiting.pop(0)
        path = folder if folder.endswith(".xml") else posixpath.join(folder, "pom.xml")
        folder = posixpath.dirname(path)
        if folder in poms or not tree.is_file(path) or posixpath.basename(path) != "pom.xml":
            continue
        if pom := read_pom(tree, path):
            poms[folder] = pom
            waiting += ["" if module == "." else module for module in pom.modules()]
    return Reactor(top=top, poms=poms) if poms else None
