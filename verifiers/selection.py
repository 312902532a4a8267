"""Which test files an evaluation runs: all of them where the budget allows it, else those the change is about."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from backends.git import Repository
from backends.tree import Tree
from languages.paths import is_test_file
from languages.registry import language, language_of_file
from mergemill.config import Settings
from taskdb.records import Candidate, Environment

ROOTS = ("src/", "lib/", "python/")
"""Folders that hold packages and are no part of a module's name."""


def eval_files(candidate: Candidate, environment: Environment, settings: Settings, tree: Repository) -> tuple[str, ...]:
    """Test files to run, sorted; empty means the whole suite as the project runs it.

    Published tasks were made by running the files their test patch touches, so the same is done to compare with them.
    """
    touched = [path for path in candidate.test_files if is_test_file(path)]
    if candidate.source.startswith("instances:") and not touched:  # tests that stand in the sources they test
        touched = [path for path in candidate.test_files if language_of_file(path) == candidate.language]
    if candidate.source.startswith("instances:") and touched:
        return tuple(sorted(_with_tests(touched, candidate, tree)))
    runs = 2 * settings.repeats + 2  # tested and solved, and at most two twin runs
    if (
        environment.test_seconds * runs <= settings.budget_seconds
        and environment.test_seconds <= settings.test_timeout / 2
    ):
        return ()
    return tuple(sorted({*touched, *importers(tree, candidate.base_commit, candidate.gold_files)}))


def _with_tests(touched: Sequence[str], candidate: Candidate, repository: Repository) -> Sequence[str]:
    """Without program files that hold no tests: a runner may break on what it would never take in by itself.

    Such are examples of types beside the tests. New files, and all where nothing else would be left, stay.
    """
    tree = Tree(repository, candidate.base_commit)
    known = set(language(candidate.language).defining_files(tree))
    held = [p for p in touched if p in known or not tree.is_file(p) or not language_of_file(p)]
    return held or touched


def importers(tree: Repository, commit: str, changed: Sequence[str]) -> list[str]:
    """Test files at `commit` that import a module of which the change touches the file."""
    modules = {module for path in changed for module in _modules(path)}
    entries = [entry for entry in tree.ls_tree(commit) if is_test_file(entry.path) and entry.mode.startswith("100")]
    contents = tree.blobs([entry.oid for entry in entries])
    return [entry.path for entry, text in zip(entries, contents, strict=True) if modules & set(imported(text))]


def imported(source: bytes) -> Iterable[str]:
    """Dotted names a Python file imports; `from a import b` gives `a` and `a.b`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _modules(path: str) -> list[str]:
    if not path.endswith(".py"):
        return []
    for root in ROOTS:
        path = path.removeprefix(root)
    return [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")]
