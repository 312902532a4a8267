"""Parser of package.json files and workspaces."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from languages import yaml_nodes
from languages.facts import find_line
from languages.source_tree import SourceTree

AUXILIARY_FOLDERS = re.compile(
    r"(^|/)(node_modules|fixtures?|__fixtures__|__tests__|templates?|examples?|e2e|playgrounds?|sandbox|benchmarks?"
    r"|test/(.+/)?(fixtures?|cases))(/|$)"
)
"""Folders whose package.json is test data or an example."""

_SECTIONS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


@dataclass(frozen=True, kw_only=True)
class NodePackage:
    """A package.json; empty if the file is not a JSON object."""

    folder: str
    """Folder relative to the root of the tree; empty for the root."""
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Path of the file."""
        return posixpath.join(self.folder, "package.json")

    @property
    def name(self) -> str:
        """Name of the package; empty if it has none."""
        return self.get_text("name")

    def get_text(self, key: str) -> str:
        """Return the string value of a key; empty if it is not a string."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def get_texts(self, key: str) -> dict[str, str]:
        """Return the string entries of a mapping."""
        value = self.data.get(key)
        return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}

    @property
    def scripts(self) -> dict[str, str]:
        """Name -> shell line of all scripts."""
        return self.get_texts("scripts")

    @property
    def dependencies(self) -> dict[str, str]:
        """Name -> version range of the dependencies of all sections."""
        return {
            name: version_range
            for section in reversed(_SECTIONS)
            for name, version_range in self.get_texts(section).items()
        }

    @property
    def programs(self) -> dict[str, str]:
        """Path, relative to the package's folder -> name of each program that the package provides."""
        path = self.get_text("bin")
        programs = {self.name.rpartition("/")[2]: path} if path else self.get_texts("bin")
        return {posixpath.normpath(path): name for name, path in programs.items()}

    def find_line(self, needle: str) -> int:
        """Return the 1-based line of the first occurrence of `needle`."""
        return find_line(self.text, needle)

    def parse_major(self, name: str) -> int:
        """Return the first number of a dependency's range; 0 if the dependency is missing or has no number."""
        match = re.search(r"\d+", self.dependencies.get(name, ""))
        return int(match.group()) if match else 0


def read_package(tree: SourceTree, folder: str) -> NodePackage:
    """Return the package of a folder."""
    text = tree.read(posixpath.join(folder, "package.json"))
    try:
        data = json.loads(text.removeprefix("\ufeff")) if text else {}
    except (ValueError, RecursionError):
        data = {}
    return NodePackage(folder=folder, text=text, data=data if isinstance(data, dict) else {})


@dataclass(frozen=True, kw_only=True)
class NodeProject:
    """A root package and the members of its workspace."""

    root: NodePackage
    members: tuple[NodePackage, ...] = ()
    """Workspace members, by folder."""
    patterns: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[NodePackage, ...]:
        """The root package and all members."""
        return (self.root, *self.members)

    def has_dependency(self, name: str) -> bool:
        """Return whether any package has the dependency."""
        return any(name in package.dependencies for package in self.packages)


def find_project(tree: SourceTree, changed_paths: tuple[str, ...]) -> NodeProject | None:
    """Return the project of the change: the root's, else that of the outermost folder with most changed files."""
    folders = [posixpath.dirname(p) for p in tree.entries if posixpath.basename(p) == "package.json"]
    folders = [folder for folder in folders if not AUXILIARY_FOLDERS.search(folder)]
    if not folders:
        return None
    if "" in folders:
        return _read_project(tree, "")
    outermost = [candidate for candidate in folders if not any(candidate.startswith(f"{other}/") for other in folders)]
    counts = {candidate: sum(path.startswith(f"{candidate}/") for path in changed_paths) for candidate in outermost}
    return _read_project(
        tree, min(outermost, key=lambda candidate: (-counts[candidate], candidate.count("/"), candidate))
    )


def _read_project(tree: SourceTree, folder: str) -> NodeProject:
    root = read_package(tree, folder)
    patterns = tuple(_read_workspace_patterns(tree, root))
    package_folders = [
        f for f in sorted(tree.folders) if tree.is_file(f"{f}/package.json") and "node_modules" not in f.split("/")
    ]
    candidates = [f for f in package_folders if f != folder and (not folder or f.startswith(f"{folder}/"))]
    member_folders = [f for f in candidates if _is_member(f[len(folder) :].strip("/"), patterns)]
    return NodeProject(root=root, members=tuple(read_package(tree, f) for f in member_folders), patterns=patterns)


def _read_workspace_patterns(tree: SourceTree, root: NodePackage) -> Iterator[str]:
    """Yield the workspace globs of npm, yarn and pnpm."""
    workspaces = root.data.get("workspaces")
    if isinstance(workspaces, dict):
        workspaces = workspaces.get("packages")
    yield from (
        (pattern for pattern in workspaces or () if isinstance(pattern, str)) if isinstance(workspaces, list) else ()
    )
    for row in yaml_nodes.load_yaml(tree.read(posixpath.join(root.folder, "pnpm-workspace.yaml")))["packages"].values():
        yield row.text


def _is_member(folder: str, patterns: tuple[str, ...]) -> bool:
    is_member = False
    for pattern in patterns:
        if _matches(folder, pattern.lstrip("!")):
            is_member = not pattern.startswith("!")
    return is_member


def _matches(folder: str, pattern: str) -> bool:
    return bool(re.fullmatch(convert_glob(pattern.removeprefix("./").rstrip("/")), folder))


def convert_glob(pattern: str) -> str:
    """Return the regex of a JavaScript glob: `*`, `**`, `?`, `{a,b}`, `@(a|b)`, `?(a)`, `(a|b)`, `[ab]`."""
    out, position, closing = "", 0, list[str]()
    while position < len(pattern):
        rest = pattern[position:]
        if rest.startswith("**/"):
            out, position = out + "(?:.*/)?", position + 3
        elif rest.startswith("**"):
            out, position = out + ".*", position + 2
        elif (group := re.match(r"[@?*+!]\(", rest)) and rest[0] != "!":
            closing.append({"?": ")?", "*": ")*", "+": ")+"}.get(rest[0], ")"))
            out, position = out + "(?:", position + len(group.group())
        elif rest[0] in "{(":
            closing.append(")")
            out, position = out + "(?:", position + 1
        elif rest[0] in "})" and closing:
            out, position = out + closing.pop(), position + 1
        elif rest[0] in ",|" and closing:
            out, position = out + "|", position + 1
        elif rest[0] == "[" and (char_class := re.match(r"\[[\w!^-]+\]", rest)):
            out, position = out + char_class.group().replace("[!", "[^"), position + len(char_class.group())
        else:
            out, position = out + {"*": "[^/]*", "?": "[^/]"}.get(rest[0], re.escape(rest[0])), position + 1
    return out + "".join(reversed(closing))
