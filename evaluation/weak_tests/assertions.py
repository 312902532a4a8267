"""Test files that assert nothing: no name in them, or in a helper that they use, is one by which a test fails."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator

from evaluation.weak_tests.source import ParsedFile
from languages.paths import is_test_file

_NAMES = re.compile(r"identifier|^(name|constant|bareword|word|atom)$")
_TEXTS = re.compile(r"comment|string|heredoc")
_STATEMENTS = re.compile(r"assert|raise|throw")
_EXAMPLES = re.compile(r">>> |```")
"""Beginning of an example in documentation, which runners check."""
_HELPERS = re.compile(r"(?i)test|spec|fixture|helper|conftest|support|util|common|base|check")
"""Paths of files that may hold helpers of tests."""
_FOLDER_MODULES = frozenset({"__init__", "index", "mod"})


def asserts_nothing(file: ParsedFile, paths: Collection[str], read: Callable[[str], ParsedFile | None]) -> bool:
    """Return whether no test of a file can fail by an assertion of the file, or of a helper that it may use.

    Args:
        file: a test file.
        paths: all paths of its tree.
        read: function that returns a parsed file of the tree; None where it cannot be parsed.
    """
    if has_assertion(file):
        return False
    words = frozenset(re.findall(r"\w+", file.source.decode(errors="replace")))
    for path in _list_helpers(file, paths, words):
        helper = read(path)
        if helper is not None and _may_use(file, helper, words) and has_assertion(helper):
            return False
    return True


def has_assertion(file: ParsedFile) -> bool:
    """Return whether a file has a statement or name by which a test fails, or an example that is checked."""
    names = re.compile(file.sites.assertions)
    failures = re.compile(file.words.failures)
    for node in file.nodes:
        if _STATEMENTS.search(node.type) or (_TEXTS.search(node.type) and _EXAMPLES.search(file.read(node))):
            return True
        if not node.named_children and _NAMES.search(node.type):
            name = file.read(node)
            if names.search(name) or failures.search(name):
                return True
    return False


def _list_helpers(file: ParsedFile, paths: Collection[str], words: Collection[str]) -> Iterator[str]:
    """Yield files of helpers that a file may use: those that it names, and those beside it or above it."""
    folder = posixpath.dirname(file.path)
    for path in paths:
        if path == file.path or posixpath.splitext(path)[1] != posixpath.splitext(file.path)[1]:
            continue
        parent = posixpath.dirname(path)
        is_above = not parent or folder == parent or folder.startswith(f"{parent}/")
        if (is_above or _get_module(path) in words) and _HELPERS.search(path):
            yield path


def _get_module(path: str) -> str:
    """Return the name by which a file is imported."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return posixpath.basename(posixpath.dirname(path)) if stem in _FOLDER_MODULES else stem


def _may_use(file: ParsedFile, helper: ParsedFile, words: Collection[str]) -> bool:
    """Return whether a file names a helper, a function that the helper alone defines, or gets it from its folder.

    Another test file of the folder is no helper by its place alone.
    """
    if _get_module(helper.path) in words or not is_test_file(helper.path):
        return True
    return any(name in words and name not in file.functions for name in helper.functions)
