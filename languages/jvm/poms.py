"""Parser of Maven poms, without Maven: modules, parents, profiles, source folders, snapshot dependencies."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from xml.etree import ElementTree as ET

from languages.source_tree import SourceTree

NOT_MODULES = re.compile(r"(^|/)(src|target|archetype-resources|test-projects?|examples?/[^/]+/src)/")
"""Folders whose poms are test data or templates."""

_PROPERTY = re.compile(r"\$\{([^}]+)\}")
_NAMESPACE = re.compile(r"^\{[^}]*\}")


@dataclass(frozen=True)
class Pom:
    """A pom."""

    path: str
    """Path relative to the root of the tree."""
    root: ET.Element
    text: str

    @property
    def folder(self) -> str:
        """Its folder; empty for the root of the tree."""
        return posixpath.dirname(self.path)

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

    def list_modules(self) -> list[tuple[str, str]]:
        """Return (path of a module's pom, profile that must be activated for it, if any)."""
        modules = [(node, "") for node in self.root.findall("modules/module")]
        for profile in self.root.findall("profiles/profile"):
            name = "" if _is_active(profile) else (profile.findtext("id") or "").strip()
            modules += [(node, name) for node in profile.findall("modules/module")]
        return [(self._resolve(name), profile) for node, profile in modules if (name := (node.text or "").strip())]

    @property
    def parent_path(self) -> str:
        """Path of the parent's pom, if it is in the tree; empty without a parent or with an empty `relativePath`."""
        parent = self.root.find("parent")
        if parent is None:
            return ""
        relative = parent.findtext("relativePath")
        return self._resolve("../pom.xml" if relative is None else relative.strip()) if relative != "" else ""

    def _resolve(self, name: str) -> str:
        """Return the path of the pom that a module or parent is given by, which may be that of its folder."""
        path = posixpath.normpath(posixpath.join(self.folder, name))
        return path if path.endswith(".xml") else posixpath.normpath(posixpath.join(path, "pom.xml"))

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
    return Pom(path=path, root=root, text=text) if root.tag == "project" else None


def _is_active(profile: ET.Element) -> bool:
    """Return whether Maven may activate a profile by itself: by default, by the JDK or by a missing property."""
    activation = profile.find("activation")
    if activation is None:
        return False
    return (
        (activation.findtext("activeByDefault") or "").strip() == "true"
        or activation.find("jdk") is not None
        or any((activation.findtext(f"property/{name}") or "").strip().startswith("!") for name in ("name", "value"))
    )


@dataclass(frozen=True)
class Reactor:
    """The poms that a Maven invocation builds; folder -> pom, the top pom first."""

    top: str
    poms: Mapping[str, Pom]
    profiles: tuple[str, ...] = ()
    """Profiles to activate, because changed files are in modules that only they build."""
    parents: Mapping[str, Pom] = field(default_factory=dict)
    """Path -> pom of parents in the tree that are not modules themselves."""

    def list_activated_profiles(self) -> list[str]:
        """Return the profiles to name on the command line; empty if Maven's own activation is enough.

        Where any is named, those that are active by default have to be named, too.
        """
        default = [
            (profile.findtext("id") or "").strip()
            for pom in self.poms.values()
            for profile in pom.root.findall("profiles/profile")
            if (profile.findtext("activation/activeByDefault") or "").strip() == "true"
        ]
        return sorted({*self.profiles, *default}) if self.profiles else []

    def list_skips(self) -> list[tuple[str, Pom]]:
        """Return (property, pom) of the properties by which the top pom or its parents skip all tests."""
        return [
            (name, pom)
            for pom in self.list_ancestors(self.top)
            for name in ("skipTests", "maven.test.skip")
            if pom.find_text("properties", name) == "true"
        ]

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
        # Poms of a faulty tree may be parents of each other.
        while pom is not None and pom not in ancestors:
            ancestors.append(pom)
            pom = self._find_parent(pom)
        return ancestors

    def _find_parent(self, pom: Pom) -> Pom | None:
        key = (pom.find_text("parent", "groupId"), pom.find_text("parent", "artifactId"))
        poms = [*self.poms.values(), *self.parents.values()]
        return next((other for other in poms if other.coordinates == key), None) if any(key) else None

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
        own = {pom.coordinates for pom in (*self.poms.values(), *self.parents.values())}
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


def read_reactor(
    tree: SourceTree, changed_paths: Sequence[str] = (), *, top: str | None = None, profiles: Sequence[str] = ()
) -> Reactor | None:
    """Return the reactor that contains most of the changed files, preferably the root's; None without poms.

    Args:
        tree: the repository.
        changed_paths: files of the change. Profiles without which no module contains them are activated.
        top: folder of the reactor's own pom, if it is known.
        profiles: profiles that are activated in any case.
    """
    paths = [path for path in tree.glob("*pom.xml") if posixpath.basename(path) == "pom.xml"]
    paths = [path for path in paths if not NOT_MODULES.search(path)]
    tree.read_many(paths)
    poms = {path: pom for path in paths if (pom := read_pom(tree, path))}
    if top is None:
        top = _find_top(poms, changed_paths)
    if top is None:
        return None
    modules, activated = _list_reactor(poms, posixpath.join(top, "pom.xml"), changed_paths, profiles)
    if not modules:
        return None
    reactor = {poms[path].folder: poms[path] for path in modules}
    return Reactor(top=top, poms=reactor, profiles=activated, parents=_read_parents(tree, reactor))


def _find_top(poms: Mapping[str, Pom], changed_paths: Sequence[str]) -> str | None:
    """Return the folder of the reactor with most changed files, then of the root or the largest; None without poms."""
    listed = {module for path, pom in poms.items() for module, _ in pom.list_modules() if module != path}
    folders = [_find_folder(poms, path) for path in changed_paths]
    ranked: list[tuple[int, bool, int, int, str]] = []
    # In a circle of modules, every pom is listed by another.
    for path in sorted(set(poms) - listed or poms):
        modules, _ = _list_reactor(poms, path, changed_paths)
        inside = {poms[module].folder for module in modules}
        covered = sum(folder in inside for folder in folders)
        ranked.append((covered, path == "pom.xml", len(modules), -len(path), poms[path].folder))
    return max(ranked)[-1] if ranked else None


def _find_folder(poms: Mapping[str, Pom], path: str) -> str | None:
    """Return the innermost folder with a pom that contains a file; None if there is none."""
    folder = posixpath.dirname(path)
    while posixpath.join(folder, "pom.xml") not in poms:
        if not folder:
            return None
        folder = posixpath.dirname(folder)
    return folder


def _list_reactor(
    poms: Mapping[str, Pom], top: str, changed_paths: Sequence[str], activated: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths of the poms that the pom at `top` builds, and the profiles to activate."""
    changed = {_find_folder(poms, path) for path in changed_paths}
    modules: list[str] = []
    profiles = list(activated)
    queue = [(top, "")]
    while queue:
        path, profile = queue.pop(0)
        if path in modules or path not in poms:
            continue
        if profile and profile not in profiles:
            inside, _ = _list_reactor({key: poms[key] for key in poms if key not in modules}, path, changed_paths)
            if not changed & {poms[module].folder for module in inside}:
                continue
            profiles.append(profile)
        modules.append(path)
        queue += poms[path].list_modules()
    return tuple(modules), tuple(profiles)


def _read_parents(tree: SourceTree, reactor: Mapping[str, Pom]) -> dict[str, Pom]:
    """Return path -> pom of the parents that `relativePath` names and the reactor does not build."""
    own = {pom.path for pom in reactor.values()}
    parents: dict[str, Pom] = {}
    queue = list(reactor.values())
    while queue:
        pom = queue.pop()
        path = pom.parent_path
        if path and path not in own and path not in parents and tree.is_file(path):
            parent = read_pom(tree, path)
            if parent and parent.find_text("artifactId") == pom.find_text("parent", "artifactId"):
                parents[path] = parent
                queue.append(parent)
    return parents
