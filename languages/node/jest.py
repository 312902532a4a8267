"""Which files jest takes in, as far as its configuration can be read without running it."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from languages.node.package import glob_regex, read_package
from languages.node.quoted import quoted
from languages.tree import Tree

NAMES = ("jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "jest.config.json")
_END = r"\.[cm]?[jt]sx?$"
_DEFAULT = rf"(^|/)__tests__/.*{_END}|(^|/)([^/]*\.)?(spec|test){_END}"
_ROOT = "/testbed"
"""Where the tree lies: patterns may speak of whole paths."""


@dataclass(frozen=True)
class Config:
    """One project's configuration. All paths are from the tree's root."""

    root: str
    """Its rootDir."""
    text: str

    @property
    def is_computed(self) -> bool:
        """Whether what it takes in is told by code that is not a plain word."""
        keys = ("testMatch", "testRegex")
        return any(re.search(rf"\b{key}['\"]?\s*:", self.text) and not quoted(self.text, key) for key in keys)

    def takes(self, path: str) -> bool:
        """Whether it takes the file in."""
        if self.root and not path.startswith(f"{self.root}/"):
            return False
        whole = f"{_ROOT}/{path}"
        roots = [self._placed(root).rstrip("/") for root in quoted(self.text, "roots")]
        if roots and not any(whole.startswith(f"{root}/") for root in roots):
            return False
        if any(_found(self._placed(one), whole) for one in quoted(self.text, "testPathIgnorePatterns")):
            return False
        globs, regexes = quoted(self.text, "testMatch"), quoted(self.text, "testRegex")
        if not globs and not regexes:
            return re.search(_DEFAULT, path) is not None
        return any(_found(one, whole) for one in regexes) or self._matches(globs, whole)

    def _matches(self, globs: Sequence[str], whole: str) -> bool:
        kept = [one for one in globs if not one.startswith("!")]
        left_out = [one[1:] for one in globs if one.startswith("!")]
        return self._any(kept, whole) and not self._any(left_out, whole)

    def _any(self, globs: Sequence[str], whole: str) -> bool:
        return any(re.fullmatch(glob_regex(self._placed(one)), whole) for one in globs)

    def _placed(self, pattern: str) -> str:
        """With `<rootDir>` put in; relative folders are meant from there."""
        root = posixpath.join(_ROOT, self.root).rstrip("/")
        if pattern.startswith("<rootDir>"):
            return posixpath.normpath(pattern.replace("<rootDir>", root, 1))
        return (
            posixpath.normpath(f"{root}/{pattern}")
            if re.match(r"\.?/?\w[\w-]*/?", pattern) and "\\" not in pattern
            else pattern
        )


def configs(tree: Tree, folder: str, argv: Sequence[str]) -> list[Config]:
    """The configurations of a command that runs in `folder`; at least one, whose text may be empty."""
    named = list(_named(argv, ("-c", "--config")))
    projects = list(_named(argv, ("--projects",)))
    if not projects:
        own = next(iter(_read(tree, folder, named or [""])), Config(folder, ""))
        projects = [one.replace("<rootDir>", own.root or ".") for one in quoted(own.text, "projects")]
        if not projects:
            return [own]
    return list(_read(tree, folder, projects)) or [Config(folder, "")]


def _named(argv: Sequence[str], flags: Sequence[str]) -> Iterator[str]:
    """The values of options, also several behind one."""
    taking = False
    for word in argv:
        name, equals, value = word.partition("=")
        if word.startswith("-"):
            taking = name in flags and not equals
            if name in flags and equals:
                yield value
        elif taking:
            yield word


def _read(tree: Tree, folder: str, places: Sequence[str]) -> Iterator[Config]:
    """The configurations at files or folders, which may be patterns."""
    for place in places:
        path = posixpath.normpath(posixpath.join(folder, place)) if place or folder else ""
        path = "" if path == "." else path
        known = [*tree.entries, *tree.folders] if "*" in path else [path]
        for one in known:
            if "*" not in path or re.fullmatch(glob_regex(path), one):
                yield from _at(tree, one)


def _at(tree: Tree, path: str) -> Iterator[Config]:
    """The configuration that is the file, or lies in the folder."""
    if tree.is_file(path) and not path.endswith("package.json"):
        yield _config(tree, path)
        return
    folder = posixpath.dirname(path) if path.endswith("package.json") else path
    for name in NAMES:
        if tree.is_file(file := posixpath.join(folder, name)):
            yield _config(tree, file)
            return
    data = read_package(tree, folder).data.get("jest")
    if isinstance(data, dict):
        yield _rooted(folder, json.dumps(data))


def _config(tree: Tree, path: str) -> Config:
    return _rooted(posixpath.dirname(path), tree.read(path))


def _rooted(folder: str, text: str) -> Config:
    root = next(iter(quoted(text, "rootDir")), "")
    placed = posixpath.normpath(posixpath.join(folder, root)) if root and "<" not in root else folder
    return Config("" if placed in (".", "/") or placed.startswith("..") else placed, text)


def _found(pattern: str, whole: str) -> bool:
    try:
        return re.search(pattern, whole) is not None
    except re.error:
        return False
