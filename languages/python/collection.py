"""Which test files a runner finds by itself: suites that a project keeps as data of its tests are not among them."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import zip_longest
from pathlib import PurePosixPath

from languages.python.testing import PytestConfig
from languages.source_tree import SourceTree

_SKIPPED_FOLDERS = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")
"""Default of pytest's `norecursedirs`."""
_CONDITION = re.compile(r"^if\b(?! __name__)", re.MULTILINE)
_DEFINITION = re.compile(r"^(async\s+)?(def test|class\b)", re.MULTILINE)


def select_collected_files(tree: SourceTree, files: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return the files that pytest collects below its arguments: its settings name them and do not exclude them.

    Files all of whose definitions stand under a condition, such as whether a package can be imported, may have no
    tests where others have them.

    Args:
        tree: tree of the base commit.
        files: test files.
        paths: arguments of pytest; folders above and at them are always entered.
    """
    patterns = PytestConfig(tree).get_words("python_files") or ["test_*.py", "*_test.py"]
    exclusions = PytestExclusions(tree)
    arguments = [path.rstrip("/") for path in paths]

    def is_collected(file: str) -> bool:
        if file in arguments:
            return True
        top = max((path for path in arguments if file.startswith(f"{path}/")), key=len, default="")
        is_named = any(fnmatch(posixpath.basename(file), pattern) for pattern in patterns)
        return is_named and not exclusions.cover(file, top)

    collected = [path for path in files if is_collected(path)]
    return [path for path, text in tree.read_many(collected).items() if not _is_conditional(text)]


def _is_conditional(text: str) -> bool:
    return _CONDITION.search(text) is not None and _DEFINITION.search(text) is None


class PytestExclusions:
    """Paths that pytest does not collect.

    That is the set that `norecursedirs`, `--ignore(-glob)` in `addopts`, and literal `collect_ignore(_glob)` in
    `conftest.py` files exclude.
    """

    def __init__(self, tree: SourceTree) -> None:
        config = PytestConfig(tree)
        skipped = config.get_words("norecursedirs") or _SKIPPED_FOLDERS
        self._ignored = (*_read_ignored(config.get_words("addopts")), *_find_ignored(tree))
        self._folders = {folder for folder in tree.folders if any(_matches(folder, pattern) for pattern in skipped)} | {
            folder for folder in tree.folders if self._is_ignored(folder)
        }

    def cover(self, file: str, top: str = "") -> bool:
        """Return whether a file is excluded, or lies in an excluded folder below the folder `top`."""
        parents = map(str, PurePosixPath(file).parents)
        return any(folder in self._folders and len(folder) > len(top) for folder in parents) or self._is_ignored(file)

    def _is_ignored(self, path: str) -> bool:
        return any(fnmatch(path, pattern) for pattern in self._ignored)


def _matches(folder: str, pattern: str) -> bool:
    """Return whether a pattern of `norecursedirs` names a folder: by its name, or by the end of its path."""
    return fnmatch(f"/{folder}", f"*/{pattern}") if "/" in pattern else fnmatch(posixpath.basename(folder), pattern)


def _read_ignored(options: Sequence[str]) -> Iterator[str]:
    """Yield the paths and patterns, from the tree's root, that options of pytest ignore."""
    for option, following in zip_longest(options, options[1:], fillvalue=""):
        name, equals, value = option.partition("=")
        if name in ("--ignore", "--ignore-glob"):
            yield posixpath.normpath(value if equals else following)


def _find_ignored(tree: SourceTree) -> Iterator[str]:
    """Yield the paths and patterns, from the tree's root, that the `conftest.py` files ignore."""
    names = [path for path in tree.entries if posixpath.basename(path) == "conftest.py"]
    for path, text in tree.read_many(names).items():
        if "collect_ignore" not in text:
            continue
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError):
            continue
        for statement in body:
            if isinstance(statement, ast.Assign) and _is_ignore_list(statement.targets[0]):
                yield from (posixpath.join(posixpath.dirname(path), word) for word in _read_words(statement.value))


def _is_ignore_list(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id in ("collect_ignore", "collect_ignore_glob")


def _read_words(value: ast.expr) -> list[str]:
    elements = value.elts if isinstance(value, ast.List | ast.Tuple) else []
    return [
        element.value.rstrip("/")
        for element in elements
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    ]
