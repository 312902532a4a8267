"""Detection of the files that jest includes, as far as its configuration is readable without running it."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from languages.node.js_words import parse_quoted_words
from languages.node.package import convert_glob, read_package
from languages.node.scripts import read_option_values
from languages.source_tree import SourceTree

NAMES = ("jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "jest.config.json")
_END = r"\.[cm]?[jt]sx?$"
_DEFAULT = rf"(^|/)__tests__/.*{_END}|(^|/)([^/]*\.)?(spec|test){_END}"
_ROOT = "/testbed"
"""Location of the tree in the container: patterns may match absolute paths."""


@dataclass(frozen=True)
class JestConfig:
    """Jest configuration of a project. Paths are relative to the root of the tree."""

    root: str
    """The `rootDir`."""
    text: str

    @property
    def is_computed(self) -> bool:
        """Whether the included files are computed by code."""
        keys = ("testMatch", "testRegex")
        return any(
            re.search(rf"\b{key}['\"]?\s*:", self.text) and not parse_quoted_words(self.text, key) for key in keys
        )

    def includes_path(self, path: str) -> bool:
        """Return whether the configuration includes the file."""
        if self.root and not path.startswith(f"{self.root}/"):
            return False
        absolute = f"{_ROOT}/{path}"
        roots = [self._resolve_root_dir(root).rstrip("/") for root in parse_quoted_words(self.text, "roots")]
        if roots and not any(absolute.startswith(f"{root}/") for root in roots):
            return False
        if any(
            _match_pattern(self._resolve_root_dir(pattern), absolute)
            for pattern in parse_quoted_words(self.text, "testPathIgnorePatterns")
        ):
            return False
        globs, regexes = parse_quoted_words(self.text, "testMatch"), parse_quoted_words(self.text, "testRegex")
        if not globs and not regexes:
            return re.search(_DEFAULT, path) is not None
        return any(_match_pattern(pattern, absolute) for pattern in regexes) or self._matches_globs(globs, absolute)

    def _matches_globs(self, globs: Sequence[str], absolute: str) -> bool:
        included = [glob for glob in globs if not glob.startswith("!")]
        excluded = [glob[1:] for glob in globs if glob.startswith("!")]
        return self._matches_any(included, absolute) and not self._matches_any(excluded, absolute)

    def _matches_any(self, globs: Sequence[str], absolute: str) -> bool:
        return any(re.fullmatch(convert_glob(self._resolve_root_dir(glob)), absolute) for glob in globs)

    def _resolve_root_dir(self, pattern: str) -> str:
        """Return a pattern with `<rootDir>` substituted and relative folders resolved."""
        root = posixpath.join(_ROOT, self.root).rstrip("/")
        if pattern.startswith("<rootDir>"):
            return posixpath.normpath(pattern.replace("<rootDir>", root, 1))
        return (
            posixpath.normpath(f"{root}/{pattern}")
            if re.match(r"\.?/?\w[\w-]*/?", pattern) and "\\" not in pattern
            else pattern
        )


def read_configs(tree: SourceTree, folder: str, argv: Sequence[str]) -> list[JestConfig]:
    """Return the configurations of a command that runs in `folder`; at least one, possibly empty."""
    paths = list(read_option_values(argv, ("-c", "--config")))
    projects = list(read_option_values(argv, ("--projects",)))
    if not projects:
        config = next(iter(_read_configs_at(tree, folder, paths or [""])), JestConfig(folder, ""))
        projects = [
            project.replace("<rootDir>", config.root or ".") for project in parse_quoted_words(config.text, "projects")
        ]
        if not projects:
            return [config]
    return list(_read_configs_at(tree, folder, projects)) or [JestConfig(folder, "")]


def _read_configs_at(tree: SourceTree, folder: str, patterns: Sequence[str]) -> Iterator[JestConfig]:
    """Yield the configurations at files or folders, which may be globs."""
    for pattern in patterns:
        path = posixpath.normpath(posixpath.join(folder, pattern)) if pattern or folder else ""
        path = "" if path == "." else path
        paths = [*tree.entries, *tree.folders] if "*" in path else [path]
        for candidate in paths:
            if "*" not in path or re.fullmatch(convert_glob(path), candidate):
                yield from _read_config_at(tree, candidate)


def _read_config_at(tree: SourceTree, path: str) -> Iterator[JestConfig]:
    """Yield the configuration in the file or folder."""
    if tree.is_file(path) and not path.endswith("package.json"):
        yield _parse_config(tree, path)
        return
    folder = posixpath.dirname(path) if path.endswith("package.json") else path
    for name in NAMES:
        if tree.is_file(file := posixpath.join(folder, name)):
            yield _parse_config(tree, file)
            return
    data = read_package(tree, folder).data.get("jest")
    if isinstance(data, dict):
        yield _resolve_root(folder, json.dumps(data))


def _parse_config(tree: SourceTree, path: str) -> JestConfig:
    return _resolve_root(posixpath.dirname(path), tree.read(path))


def _resolve_root(folder: str, text: str) -> JestConfig:
    root = next(iter(parse_quoted_words(text, "rootDir")), "")
    resolved = posixpath.normpath(posixpath.join(folder, root)) if root and "<" not in root else folder
    return JestConfig("" if resolved in (".", "/") or resolved.startswith("..") else resolved, text)


def _match_pattern(pattern: str, absolute: str) -> bool:
    try:
        return re.search(pattern, absolute) is not None
    except re.error:
        return False
