"""Whether the tests of a report can be run again by their files."""

from __future__ import annotations

from collections.abc import Collection

from backends.git import list_patch_paths
from evaluation.weak_tests.find import TreeSource
from languages.registry import frameworks_by_name
from taskdb.records import TestId


def can_select_files(framework: str, tree: TreeSource, tests: Collection[TestId], others: Collection[TestId]) -> bool:
    """Return whether further runs may be given the files of the tests, and not the whole suite.

    Some frameworks take no files, and some reports name suites or classes that are no files of the tree. Their tests
    would never run again.

    Args:
        framework: name of the framework.
        tree: tree of the runs.
        tests: tests that must run again; all of their files must be in the tree.
        others: further tests, of which any file is enough where there are no such tests.
    """
    if not frameworks_by_name()[framework].selects_files:
        return False
    patched = (path for patch in tree.patches for path in list_patch_paths(patch))
    known = {*patched, *(entry.path for entry in tree.repository.ls_tree(tree.base))}
    if tests:
        return _list_files(tests) <= known
    return not known.isdisjoint(_list_files(others))


def _list_files(tests: Collection[TestId]) -> set[str]:
    return {test.partition("::")[0] for test in tests}
