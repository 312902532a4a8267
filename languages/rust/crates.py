"""The packages of a tree: their manifests, targets, workspaces, and what they ask of the compiler."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import chain, islice
from typing import Any

from languages.tree import Tree

_EDITIONS = {"2018": 31, "2021": 56, "2024": 85}
_LOCKS = {"3": 53, "4": 78}
"""Version of a Cargo.lock -> the first minor that reads it."""


def table(value: object) -> dict[str, Any]:
    """`value` where it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[dict[str, Any]]:
    """The tables of an array, else none."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


@dataclass(frozen=True, kw_only=True, eq=False)
class Crate:
    """A Cargo.toml; each is read once, so two are the same when they are one object."""

    tree: Tree
    folder: str
    content: dict[str, Any]

    @property
    def file(self) -> str:
        """Its path."""
        return posixpath.join(self.folder, "Cargo.toml")

    @property
    def name(self) -> str:
        """Of the package; empty for a manifest that is only a workspace."""
        name = table(self.content.get("package") or self.content.get("project")).get("name")
        return name if isinstance(name, str) else ""

    @property
    def workspace(self) -> dict[str, Any] | None:
        """The workspace it is the root of."""
        return table(self.content["workspace"]) if "workspace" in self.content else None

    def has(self, path: str) -> bool:
        """Whether its folder holds the file."""
        return self.tree.is_file(posixpath.join(self.folder, path))

    @property
    def features(self) -> dict[str, Any]:
        """Its features."""
        return table(self.content.get("features"))

    @property
    def patched(self) -> frozenset[str]:
        """Packages that come from a folder of the tree, whoever asks for them."""
        tables = (table(patches) for patches in table(self.content.get("patch")).values())
        return frozenset(name for patches in tables for name, patch in patches.items() if "path" in table(patch))

    def targets(self, kind: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(name, path from the crate's folder, table) of the targets that it lists: bin, test, example, bench."""
        for row in rows(self.content.get(kind)):
            name = str(row.get("name", ""))
            yield name, str(row.get("path") or self._usual(kind, name)), row

    def _usual(self, kind: str, name: str) -> str:
        folder = {"bin": "src/bin", "test": "tests", "example": "examples", "bench": "benches"}[kind]
        places = [f"{folder}/{name}.rs", f"{folder}/{name}/main.rs", *(["src/main.rs"] if kind == "bin" else [])]
        return next((place for place in places if self.has(place)), places[0])

    @cached_property
    def library(self) -> str:
        """Path of the library's source from the crate's folder; empty when there is none."""
        path = table(self.content.get("lib")).get("path") or "src/lib.rs"
        return str(path) if self.has(str(path)) else ""

    def stubs(self) -> Iterator[str]:
        """Sources, from the tree's root, that cargo wants to see before it compiles dependencies."""
        if not self.name:
            return
        build = table(self.content.get("package")).get("build")
        script = build if isinstance(build, str) else "build.rs"
        listed = [self.library, "src/main.rs", *(path for kind in _KINDS for _, path, _ in self.targets(kind))]
        found = [posixpath.join(self.folder, path) for path in listed if path and self.has(path)] or self._unlisted()
        if self.has(script):
            found.append(posixpath.join(self.folder, script))
        yield from dict.fromkeys(posixpath.normpath(path) for path in found)

    def _unlisted(self) -> list[str]:
        """One source that cargo finds by itself, of a package without library: a package needs one of some kind."""
        inside = (
            path for path in self.tree.entries if posixpath.dirname(path) == posixpath.join(self.folder, "src/bin")
        )
        programs = (path for path in inside if path.endswith(".rs"))
        return list(islice(chain(self.test_roots(None), programs), 1))

    def test_roots(self, enabled: frozenset[str] | None) -> Iterator[str]:
        """Roots of integration tests, from the tree's root; of those that need features only with them (None: all)."""
        listed = {path: row for _, path, row in self.targets("test")}
        folder = posixpath.join(self.folder, "tests")
        found = list(listed)
        if table(self.content.get("package")).get("autotests", True):
            inside = [path for path in self.tree.entries if path.startswith(f"{folder}/") and path.endswith(".rs")]
            names = [path.removeprefix(f"{folder}/") for path in inside]
            found += [f"tests/{name}" for name in names if "/" not in name or re.fullmatch(r"[^/]+/main\.rs", name)]
        for path in dict.fromkeys(found):
            row = listed.get(path, {})
            needs = row.get("required-features", [])
            if row.get("test", True) and (enabled is None or set(needs) <= enabled):
                yield posixpath.normpath(posixpath.join(self.folder, path))


_KINDS = ("bin", "test", "example", "bench")


def read_crates(tree: Tree) -> list[Crate]:
    """All Cargo.toml that can be read, by folder; test data and vendored ones aside."""
    paths = [
        path for path in tree.glob("*Cargo.toml")
        if path.rpartition("/")[2] == "Cargo.toml" and not re.search(r"(^|/)(vendor|testdata|fixtures|target)/", path)
    ]  # fmt: skip
    found = []
    for path, text in tree.read_many(paths).items():
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        found.append(Crate(tree=tree, folder=path.rpartition("/")[0], content=content))
    return found


def holding(crates: Sequence[Crate], path: str) -> Crate | None:
    """The innermost package whose folder holds `path`."""
    fitting = [one for one in crates if one.name and (not one.folder or path.startswith(f"{one.folder}/"))]
    return max(fitting, key=lambda one: len(one.folder), default=None)


def root_of(crates: Sequence[Crate], crate: Crate) -> Crate:
    """The manifest of the workspace that `crate` is a member of, else itself."""
    if crate.workspace is not None:
        return crate
    above = [one for one in crates if one.workspace is not None and crate in members(crates, one)]
    return max(above, key=lambda one: len(one.folder), default=crate)


def members(crates: Sequence[Crate], root: Crate) -> list[Crate]:
    """The packages of a workspace: the root's own, those that `members` names, and path dependencies of these."""
    if root.workspace is None:
        return [root]
    listed = [str(one).strip("/").removeprefix("./") for one in root.workspace.get("members", [])]
    left_out = [str(one).strip("/").removeprefix("./") for one in root.workspace.get("exclude", [])]
    base = f"{root.folder}/" if root.folder else ""

    def inside(crate: Crate) -> str:
        return crate.folder.removeprefix(base)

    chosen = [root] if root.name else []
    for one in crates:
        if one.name and one is not root and one.folder.startswith(base):
            named = any(fnmatch(inside(one), pattern) for pattern in listed)
            if named and inside(one) not in left_out:
                chosen.append(one)
    by_folder = {one.folder: one for one in crates}
    for one in chosen:  # grows while it is walked
        for path in _path_dependencies(one):
            other = by_folder.get(path)
            fits = other and other.name and other.folder.startswith(base) and inside(other) not in left_out
            if other and fits and other not in chosen:
                chosen.append(other)
    return chosen


def _path_dependencies(crate: Crate) -> Iterator[str]:
    tables = [crate.content, *table(crate.content.get("target")).values(), crate.workspace or {}]
    for part in tables:
        for key in ("dependencies", "dev-dependencies", "build-dependencies"):
            for value in table(table(part).get(key)).values():
                if isinstance(value, dict) and isinstance(value.get("path"), str):
                    yield posixpath.normpath(posixpath.join(crate.folder, value["path"])).removeprefix(".")


def least_minor(tree: Tree, root: Crate, tested: Sequence[Crate]) -> tuple[int, str]:
    """(the first minor of Rust that reads all of it, the file that says so)."""
    asked = [(41, root.file)]
    for one in [root, *tested]:
        for package in (table(one.content.get("package")), table((one.workspace or {}).get("package"))):
            version = re.match(r"1\.(\d+)", str(package.get("rust-version", "")))
            asked.append((int(version[1]) if version else 0, one.file))
            asked.append((_EDITIONS.get(str(package.get("edition", "")), 0), one.file))
            if any(isinstance(value, dict) and value.get("workspace") is True for value in package.values()):
                asked.append((64, one.file))
        if any(isinstance(v, str) and v.startswith("dep:") for f in one.features.values() for v in f):
            asked.append((60, one.file))
    lock = posixpath.join(root.folder, "Cargo.lock")
    version = re.search(r"^version = (\d)", tree.read(lock), re.MULTILINE)
    asked.append((_LOCKS.get(version[1], 0) if version else 0, lock))
    return max(asked, key=lambda pair: pair[0])
