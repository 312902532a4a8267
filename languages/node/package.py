"""Reads package.json files and tells which of them belong together."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from languages import marked
from languages.facts import line_of
from languages.tree import Tree

BESIDE = re.compile(
    r"(^|/)(node_modules|fixtures?|__fixtures__|__tests__|templates?|examples?|e2e|playgrounds?|sandbox|benchmarks?"
    r"|test/(.+/)?(fixtures?|cases))(/|$)"
)
"""Folders whose package.json is data."""

_SECTIONS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package.json; an empty one where it is no JSON object."""

    folder: str
    """From the tree's root, empty for the root."""
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Of the file."""
        return posixpath.join(self.folder, "package.json")

    @property
    def name(self) -> str:
        """Its name, empty when it has none."""
        return self.word("name")

    def word(self, key: str) -> str:
        """A value that is text."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def words(self, key: str) -> dict[str, str]:
        """A mapping's entries that are text."""
        value = self.data.get(key)
        return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}

    @property
    def scripts(self) -> dict[str, str]:
        """Name -> shell line."""
        return self.words("scripts")

    @property
    def dependencies(self) -> dict[str, str]:
        """Name -> range, of all sections."""
        return {name: wanted for section in reversed(_SECTIONS) for name, wanted in self.words(section).items()}

    def line(self, needle: str) -> int:
        """Where `needle` first stands in the file."""
        return line_of(self.text, needle)

    def major(self, name: str) -> int:
        """The first number of a dependency's range; 0 when it is not asked for or has no number."""
        match = re.search(r"\d+", self.dependencies.get(name, ""))
        return int(match.group()) if match else 0


def read_package(tree: Tree, folder: str) -> Package:
    """The package of a folder."""
    text = tree.read(posixpath.join(folder, "package.json"))
    try:
        data = json.loads(text.removeprefix("\ufeff")) if text else {}
    except (ValueError, RecursionError):
        data = {}
    return Package(folder=folder, text=text, data=data if isinstance(data, dict) else {})


@dataclass(frozen=True, kw_only=True)
class Project:
    """The package that is installed and the members of its workspace."""

    root: Package
    members: tuple[Package, ...] = ()
    """Those that the installer of `root` takes in, by folder."""
    patterns: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[Package, ...]:
        """All of them."""
        return (self.root, *self.members)

    def wants(self, name: str) -> bool:
        """Whether any package asks for the dependency."""
        return any(name in one.dependencies for one in self.packages)


def find_project(tree: Tree, touched: tuple[str, ...]) -> Project | None:
    """The project that the change is about: of the root, else of the outermost folder around most of its files."""
    folders = [posixpath.dirname(p) for p in tree.entries if posixpath.basename(p) == "package.json"]
    folders = [folder for folder in folders if not BESIDE.search(folder)]
    if not folders:
        return None
    if "" in folders:
        return _project(tree, "")
    outer = [one for one in folders if not any(one.startswith(f"{other}/") for other in folders)]
    counted = {one: sum(path.startswith(f"{one}/") for path in touched) for one in outer}
    return _project(tree, min(outer, key=lambda one: (-counted[one], one.count("/"), one)))


def _project(tree: Tree, folder: str) -> Project:
    root = read_package(tree, folder)
    patterns = tuple(_patterns(tree, root))
    below = [
        f for f in sorted(tree.folders) if tree.is_file(f"{f}/package.json") and "node_modules" not in f.split("/")
    ]
    inside = [f for f in below if f != folder and (not folder or f.startswith(f"{folder}/"))]
    taken = [f for f in inside if _is_member(f[len(folder) :].strip("/"), patterns)]
    return Project(root=root, members=tuple(read_package(tree, f) for f in taken), patterns=patterns)


def _patterns(tree: Tree, root: Package) -> Iterator[str]:
    """The workspace's patterns of folders, of npm, yarn and pnpm."""
    given = root.data.get("workspaces")
    if isinstance(given, dict):
        given = given.get("packages")
    yield from (one for one in given or () if isinstance(one, str)) if isinstance(given, list) else ()
    for row in marked.load(tree.read(posixpath.join(root.folder, "pnpm-workspace.yaml")))["packages"].values():
        yield row.text


def _is_member(folder: str, patterns: tuple[str, ...]) -> bool:
    taken = False
    for pattern in patterns:
        if _matches(folder, pattern.lstrip("!")):
            taken = not pattern.startswith("!")
    return taken


def _matches(folder: str, pattern: str) -> bool:
    return bool(re.fullmatch(glob_regex(pattern.removeprefix("./").rstrip("/")), folder))


def glob_regex(pattern: str) -> str:
    """A regex for a glob as JavaScript's tools read it: `*`, `**`, `?`, `{a,b}`, `@(a|b)`, `?(a)`, `[ab]`."""
    out, at, closing = "", 0, list[str]()
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            out, at = out + "(?:.*/)?", at + 3
        elif rest.startswith("**"):
            out, at = out + ".*", at + 2
        elif (group := re.match(r"[@?*+!]\(", rest)) and rest[0] != "!":
            closing.append({"?": ")?", "*": ")*", "+": ")+"}.get(rest[0], ")"))
            out, at = out + "(?:", at + len(group.group())
        elif rest[0] == "{":
            closing.append(")")
            out, at = out + "(?:", at + 1
        elif rest[0] in "})" and closing:
            out, at = out + closing.pop(), at + 1
        elif rest[0] in ",|" and closing:
            out, at = out + "|", at + 1
        elif rest[0] == "[" and (box := re.match(r"\[[\w!^-]+\]", rest)):
            out, at = out + box.group().replace("[!", "[^"), at + len(box.group())
        else:
            out, at = out + {"*": "[^/]*", "?": "[^/]"}.get(rest[0], re.escape(rest[0])), at + 1
    return out + "".join(reversed(closing))
