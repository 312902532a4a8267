"""The three patches of an injected bug, each against the tree that it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backends.git import GitRepository
from backends.index import ScratchIndex


@dataclass(frozen=True, kw_only=True)
class InjectionPatches:
    """`setup_patch` turns the base commit into the agent's tree, to which the other two apply in any order."""

    setup_patch: bytes
    """Adds the bugs and removes the test files that fail with them."""
    gold_patch: bytes
    """Removes the bugs."""
    test_patch: bytes
    """Restores the test files."""


def build_injection_patches(
    repository: GitRepository,
    base: str,
    bugs: Sequence[bytes],
    hidden: Sequence[str],
    *,
    own_gold: bytes = b"",
    own_tests: bytes = b"",
) -> InjectionPatches:
    """Return the patches of bugs that are injected together.

    Args:
        repository: repository that contains `base`.
        base: the base commit.
        bugs: a patch of each bug, against `base`.
        hidden: test files to remove from the agent's tree.
        own_gold: the change's own gold patch, where it is part of the task.
        own_tests: the change's own test patch; it may change hidden files.

    Raises:
        GitError: the bugs conflict with each other.
    """
    with ScratchIndex(repository, base) as index:
        for bug in bugs:
            index.apply(bug, "-C1")  # another bug may be two lines away
        buggy_tree = index.write_tree()
        index.remove_files(hidden)
        setup_patch, agent_tree = index.diff(), index.write_tree()
        index.run_git("read-tree", buggy_tree)
        index.apply(own_tests)
        test_patch = index.diff(agent_tree)
        index.run_git("read-tree", base)
        index.apply(own_gold)
        index.remove_files(hidden)
        return InjectionPatches(setup_patch=setup_patch, gold_patch=index.diff(agent_tree), test_patch=test_patch)
