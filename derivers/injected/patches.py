"""The three patches of an injected bug, each against the tree that it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backends.git import Repository
from backends.index import ScratchIndex


@dataclass(frozen=True, kw_only=True)
class Patches:
    """`setup` makes the agent's tree of the base commit; `gold` and `tests` apply to that tree, in any order."""

    setup: bytes
    """The bugs, without the test files that show them."""
    gold: bytes
    """Takes the bugs back."""
    tests: bytes
    """Brings the test files back."""


def patches(tree: Repository, base: str, bugs: Sequence[bytes], hidden: Sequence[str]) -> Patches:
    """The patches of bugs that are put in together.

    Args:
        tree: the history that holds `base`.
        base: the base commit.
        bugs: a patch of each bug, against `base`.
        hidden: test files to be taken out of the agent's tree.

    Raises:
        GitError: the bugs do not go together.
    """
    with ScratchIndex(tree, base) as index:
        for bug in bugs:
            index.apply(bug, "-C1")  # another bug may be two lines away
        wrong = index.tree()
        _remove(index, hidden)
        setup, given = index.diff(), index.tree()
        index.git("read-tree", wrong)
        tests = index.diff(given)
        index.git("read-tree", base)
        _remove(index, hidden)
        return Patches(setup=setup, gold=index.diff(given), tests=tests)


def _remove(index: ScratchIndex, paths: Sequence[str]) -> None:
    """Take files out; by rows of the index, which needs no work tree."""
    rows = b"".join(b"0 %b\t%b\0" % (b"0" * 40, path.encode(errors="surrogateescape")) for path in paths)
    if rows:
        index.git("update-index", "-z", "--index-info", data=rows)
