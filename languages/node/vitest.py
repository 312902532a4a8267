"""Detection of the files that vitest includes, as far as its configuration is readable without running it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from languages.node.js_words import parse_quoted_words, read_block, remove_block, split_list
from languages.node.package import convert_glob, read_package
from languages.node.scripts import read_option_values
from languages.source_tree import SourceTree

NAMES = tuple(f"{name}.config.{end}" for name in ("vitest", "vite") for end in ("ts", "mts", "js", "mjs", "cjs"))
_WORKSPACES = tuple(f"vitest.{name}.{end}" for name in ("workspace", "projects") for end in ("ts", "mts", "js", "json"))
_DEFAULT = r"(.*/)?[^/]*\.(test|spec)\.[cm]?[jt]sx?$"
_PROJECTS = ("projects", "workspace")
_OTHER_PATTERNS = ("coverage", "typecheck", "benchmark", "deps", "server", "optimizer", "browser")
"""Settings whose `include` and `exclude` are not about the files of tests."""


@dataclass(frozen=True)
class VitestProject:
    """A project of a configuration."""

    folder: str
    """Folder that the patterns are relative to, itself relative to the root of the tree."""
    name: str
    included: tuple[str, ...]
    """Regexes."""
    excluded: tuple[str, ...]
    """Regexes."""

    def includes_path(self, path: str) -> bool:
        """Return whether the project includes the file."""
        if self.folder and not path.startswith(f"{self.folder}/"):
            return False
        relative = posixpath.relpath(path, self.folder) if self.folder else path
        return _matches_any(self.included, relative) and not _matches_any(self.excluded, relative)


def read_projects(tree: SourceTree, folder: str, argv: Sequence[str]) -> list[VitestProject]:
    """Return the projects that a command runs in `folder`; at least one."""
    names = [*read_option_values(argv, ("-c", "--config")), *NAMES]
    text = next((text for name in names if (text := tree.read(_join(folder, name)))), "")
    settings = _read_test_settings(text)
    workspace = next((text for name in _WORKSPACES if (text := tree.read(_join(folder, name)))), "")
    lists = [*(read_block(settings, key, "[") for key in _PROJECTS), workspace[max(workspace.find("["), 0) :]]
    items = next((items for text in lists if (items := split_list(text))), [])
    for key in _PROJECTS:
        settings = remove_block(settings, key, "[")
    projects = [project for item in items for project in _read_item(tree, folder, item, settings)]
    wanted = list(read_option_values(argv, ("--project",)))
    selected = [project for project in projects if _is_wanted(project.name, wanted)]
    return selected or projects or [_create_project(folder, "", settings)]


def _read_item(tree: SourceTree, folder: str, item: str, inherited: str) -> Iterator[VitestProject]:
    """Yield the projects of an entry of `projects`: an object, or a glob of files or folders of configurations."""
    if item.startswith("{"):
        settings = _read_test_settings(item) if "test" in item else item
        name = next(iter(parse_quoted_words(settings, "name")), "")
        is_extension = re.search(r"\bextends\s*:", item) is not None
        yield _create_project(folder, name, settings, inherited if is_extension else "")
        return
    pattern = _join(folder, item.strip("'\"` "))
    candidates = [*tree.entries, *tree.folders] if "*" in pattern else [pattern]
    for path in candidates:
        if "*" in pattern and not re.fullmatch(convert_glob(pattern.rstrip("/")), path):
            continue
        own = posixpath.dirname(path) if tree.is_file(path) else path
        text = tree.read(path) or next((text for name in NAMES if (text := tree.read(_join(own, name)))), "")
        settings = _read_test_settings(text)
        named = next(iter(parse_quoted_words(settings, "name")), "")
        if text or own in tree.folders:
            yield _create_project(own, named or read_package(tree, own).name or posixpath.basename(own), settings)


def _create_project(folder: str, name: str, settings: str, inherited: str = "") -> VitestProject:
    included = parse_quoted_words(settings, "include") or parse_quoted_words(inherited, "include")
    excluded = parse_quoted_words(settings, "exclude") or parse_quoted_words(inherited, "exclude")
    patterns = tuple(map(_convert_pattern, included)) or (_DEFAULT,)
    return VitestProject(folder, name, patterns, tuple(map(_convert_pattern, excluded)))


def _read_test_settings(text: str) -> str:
    """Return the `test: {...}` of a configuration, without the parts that have patterns of other files."""
    settings = read_block(text, "test")
    for key in _OTHER_PATTERNS:
        settings = remove_block(settings, key)
    return settings


def _is_wanted(name: str, wanted: Sequence[str]) -> bool:
    """Return whether `--project` selects a name: by a name or glob of it, and by none with an exclamation mark."""
    selecting = [pattern for pattern in wanted if not pattern.startswith("!")]
    is_selected = not selecting or any(fnmatchcase(name, pattern) for pattern in selecting)
    return is_selected and not any(fnmatchcase(name, pattern[1:]) for pattern in wanted if pattern.startswith("!"))


def _join(folder: str, name: str) -> str:
    path = posixpath.normpath(posixpath.join(folder, name))
    return "" if path == "." else path


def _convert_pattern(pattern: str) -> str:
    return f"(.*/)?{convert_glob(pattern.removeprefix('./').removeprefix('**/'))}"


def _matches_any(patterns: Sequence[str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)
