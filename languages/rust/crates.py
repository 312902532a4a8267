"""Cargo packages of a tree: manifests, targets, workspaces and minimum compiler version."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import chain, islice
from typing import Any

from core.toml import as_table, parse_toml
from languages.source_tree import SourceTree

_EDITIONS = {"2018": 31, "2021": 56, "2024": 85}
_LOCKS = {"3": 53, "4": 78}
"""Format version of Cargo.lock -> first Rust minor that reads it."""


def as_tables(value: object) -> list[dict[str, Any]]:
    """Return the tables of an array; empty if `value` is not an array."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


@dataclass(frozen=True, kw_only=True, eq=False)
class Crate:
    """A Cargo.toml. Each is read once, so equality is object identity."""

    tree: SourceTree
    folder: str
    content: dict[str, Any]

    @property
    def manifest_path(self) -> str:
        """Path of the manifest."""
        return posixpath.join(self.folder, "Cargo.toml")

    @property
    def name(self) -> str:
        """Name of the package; empty for a virtual manifest."""
        name = as_table(self.content.get("package") or self.content.get("project")).get("name")
        return name if isinstance(name, str) else ""

    @property
    def workspace(self) -> dict[str, Any] | None:
        """The workspace table if this is a workspace root."""
        return as_table(self.content["workspace"]) if "workspace" in self.content else None

    def has_file(self, path: str) -> bool:
        """Return whether the file exists in the crate's folder."""
        return self.tree.is_file(posixpath.join(self.folder, path))

    @property
    def features(self) -> dict[str, Any]:
        """Feature table of the manifest."""
        return as_table(self.content.get("features"))

    @property
    def patched_names(self) -> frozenset[str]:
        """Names of packages that `[patch]` replaces by a folder of the tree."""
        tables = (as_table(patches) for patches in as_table(self.content.get("patch")).values())
        return frozenset(name for patches in tables for name, patch in patches.items() if "path" in as_table(patch))

    def list_targets(self, kind: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield (name, path relative to the crate, table) of listed targets: bin, test, example, bench."""
        for row in as_tables(self.content.get(kind)):
            name = str(row.get("name", ""))
            yield name, str(row.get("path") or self._default_target_path(kind, name)), row

    def _default_target_path(self, kind: str, name: str) -> str:
        folder = {"bin": "src/bin", "test": "tests", "example": "examples", "bench": "benches"}[kind]
        places = [f"{folder}/{name}.rs", f"{folder}/{name}/main.rs", *(["src/main.rs"] if kind == "bin" else [])]
        return next((place for place in places if self.has_file(place)), places[0])

    @cached_property
    def library(self) -> str:
        """Path of the library source relative to the crate; empty if there is none."""
        path = as_table(self.content.get("lib")).get("path") or "src/lib.rs"
        return str(path) if self.has_file(str(path)) else ""

    def list_stubs(self) -> Iterator[str]:
        """Yield the source files (relative to the tree) that must exist before cargo compiles dependencies."""
        if not self.name:
            return
        build = as_table(self.content.get("package")).get("build")
        script = build if isinstance(build, str) else "build.rs"
        listed = [self.library, "src/main.rs", *(path for kind in _KINDS for _, path, _ in self.list_targets(kind))]
        sources = [
            posixpath.join(self.folder, path) for path in listed if path and self.has_file(path)
        ] or self._find_implicit_target()
        if self.has_file(script):
            sources.append(posixpath.join(self.folder, script))
        yield from dict.fromkeys(posixpath.normpath(path) for path in sources)

    def _find_implicit_target(self) -> list[str]:
        """Return an auto-discovered source of a package without library: cargo requires at least one target."""
        binaries = (
            path for path in self.tree.entries if posixpath.dirname(path) == posixpath.join(self.folder, "src/bin")
        )
        programs = (path for path in binaries if path.endswith(".rs"))
        return list(islice(chain(self.list_test_roots(None), programs), 1))

    def list_test_roots(self, enabled: frozenset[str] | None) -> Iterator[str]:
        """Yield the root files of integration tests; `enabled` filters by required features (None: all)."""
        listed = {path: row for _, path, row in self.list_targets("test")}
        folder = posixpath.join(self.folder, "tests")
        roots = list(listed)
        if as_table(self.content.get("package")).get("autotests", True):
            sources = [path for path in self.tree.entries if path.startswith(f"{folder}/") and path.endswith(".rs")]
            names = [path.removeprefix(f"{folder}/") for path in sources]
            roots += [f"tests/{name}" for name in names if "/" not in name or re.fullmatch(r"[^/]+/main\.rs", name)]
        for path in dict.fromkeys(roots):
            row = listed.get(path, {})
            required_features = row.get("required-features", [])
            if row.get("test", True) and (enabled is None or set(required_features) <= enabled):
                yield posixpath.normpath(posixpath.join(self.folder, path))


_KINDS = ("bin", "test", "example", "bench")


def read_crates(tree: SourceTree) -> list[Crate]:
    """Return all readable Cargo.toml, by folder; test data and vendored packages are skipped."""
    paths = [
        path
        for path in tree.glob("*Cargo.toml")
        if path.rpartition("/")[2] == "Cargo.toml" and not re.search(r"(^|/)(vendor|testdata|fixtures|target)/", path)
    ]
    crates = []
    for path, text in tree.read_many(paths).items():
        try:
            content = parse_toml(text)
        except ValueError:
            continue
        crates.append(Crate(tree=tree, folder=path.rpartition("/")[0], content=content))
    return crates


def find_crate(crates: Sequence[Crate], path: str) -> Crate | None:
    """Return the innermost package that contains `path`."""
    containing = [crate for crate in crates if crate.name and (not crate.folder or path.startswith(f"{crate.folder}/"))]
    return max(containing, key=lambda crate: len(crate.folder), default=None)


def find_workspace_root(crates: Sequence[Crate], crate: Crate) -> Crate:
    """Return the workspace root that `crate` is a member of, else the crate itself."""
    if crate.workspace is not None:
        return crate
    roots = [
        candidate
        for candidate in crates
        if candidate.workspace is not None and crate in list_members(crates, candidate)
    ]
    return max(roots, key=lambda candidate: len(candidate.folder), default=crate)


def list_members(crates: Sequence[Crate], root: Crate) -> list[Crate]:
    """Return the packages of a workspace: the root package, those that `members` lists, and their path dependencies."""
    if root.workspace is None:
        return [root]
    listed = [str(candidate).strip("/").removeprefix("./") for candidate in root.workspace.get("members", [])]
    excluded = [str(candidate).strip("/").removeprefix("./") for candidate in root.workspace.get("exclude", [])]
    base = f"{root.folder}/" if root.folder else ""

    def inside(crate: Crate) -> str:
        return crate.folder.removeprefix(base)

    selected = [root] if root.name else []
    for candidate in crates:
        if candidate.name and candidate is not root and candidate.folder.startswith(base):
            is_listed = any(fnmatch(inside(candidate), pattern) for pattern in listed)
            if is_listed and inside(candidate) not in excluded:
                selected.append(candidate)
    by_folder = {candidate.folder: candidate for candidate in crates}
    # Path dependencies are members in turn, so the list grows while it is read.
    for candidate in selected:
        for path in _list_path_dependencies(candidate):
            other = by_folder.get(path)
            is_member = other and other.name and other.folder.startswith(base) and inside(other) not in excluded
            if other and is_member and other not in selected:
                selected.append(other)
    return selected


def _list_path_dependencies(crate: Crate) -> Iterator[str]:
    tables = [crate.content, *as_table(crate.content.get("target")).values(), crate.workspace or {}]
    for part in tables:
        for key in ("dependencies", "dev-dependencies", "build-dependencies"):
            for value in as_table(as_table(part).get(key)).values():
                if isinstance(value, dict) and isinstance(value.get("path"), str):
                    yield posixpath.normpath(posixpath.join(crate.folder, value["path"])).removeprefix(".")


def find_minimum_minor(tree: SourceTree, root: Crate, tested: Sequence[Crate]) -> tuple[int, str]:
    """Return (minimum Rust minor that compiles the packages, the file that requires it)."""
    requirements = [(41, root.manifest_path)]
    for crate in [root, *tested]:
        for package in (as_table(crate.content.get("package")), as_table((crate.workspace or {}).get("package"))):
            version = re.match(r"1\.(\d+)", str(package.get("rust-version", "")))
            requirements.append((int(version[1]) if version else 0, crate.manifest_path))
            requirements.append((_EDITIONS.get(str(package.get("edition", "")), 0), crate.manifest_path))
            if any(isinstance(value, dict) and value.get("workspace") is True for value in package.values()):
                # Packages inherit values of their workspace since Rust 1.64.
                requirements.append((64, crate.manifest_path))
        if any(isinstance(v, str) and v.startswith("dep:") for f in crate.features.values() for v in f):
            # Cargo reads the prefix `dep:` since Rust 1.60.
            requirements.append((60, crate.manifest_path))
    lock = posixpath.join(root.folder, "Cargo.lock")
    version = re.search(r"^version = (\d)", tree.read(lock), re.MULTILINE)
    requirements.append((_LOCKS.get(version[1], 0) if version else 0, lock))
    return max(requirements, key=lambda pair: pair[0])
