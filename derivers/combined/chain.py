"""Changes of a repository as patches to the base commit of the oldest, and which changes are related."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from backends.git import GitError, GitRepository
from backends.services import Services
from derivers.patch_merge import leave_out_patch, stack_patches
from languages.paths import is_test_file
from taskdb.records import TestId
from taskdb.records.lineage import Lineage

MAX_PARTS = 5
"""Changes of a task."""


@dataclass(frozen=True, kw_only=True)
class ChangeChain:
    """Two or more changes as patches to the base commit of the oldest, oldest first."""

    parts: tuple[Lineage, ...]
    tree: GitRepository
    gold_patches: tuple[bytes, ...]
    gold_patch: bytes
    test_patch: bytes

    @classmethod
    def from_lineages(cls, parts: Sequence[Lineage], services: Services, tree: GitRepository) -> ChangeChain:
        """Return the chain with its combined patches.

        Args:
            parts: changes, oldest first.
            services: services that provide artifacts.
            tree: tree that contains the base commits.

        Raises:
            GitError: a change does not apply on top of the older changes.
        """
        base, get = parts[0].candidate.base_commit, services.artifacts.get
        gold_patches = tuple(get(part.candidate.gold_patch) for part in parts)
        return cls(
            parts=tuple(parts),
            tree=tree,
            gold_patches=gold_patches,
            gold_patch=stack_patches(tree, base, *gold_patches),
            test_patch=stack_patches(tree, base, *(get(part.tests.patch) for part in parts)),
        )

    @property
    def oldest(self) -> Lineage:
        """The change whose base commit and image the task has."""
        return self.parts[0]

    def leave_out(self, number: int) -> bytes | None:
        """Return the gold patch without a part; None where others depend on files that it adds.

        Raises:
            GitError: the patches cannot be separated.
        """
        return leave_out_patch(self.tree, self.oldest.candidate.base_commit, self.gold_patches, number)

    @cached_property
    def test_files(self) -> list[str]:
        """Test files that any of the changes touches."""
        touched = {path for part in self.parts for path in part.tests.files}
        return sorted(path for path in touched if is_test_file(path, self.oldest.candidate.language))

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Test files that are run; empty for the whole suite."""
        chosen = [part.require_verification().eval_files for part in self.parts]
        return tuple(sorted({path for files in (*chosen, self.test_files) for path in files})) if chosen[0] else ()

    @cached_property
    def own_fail_to_pass(self) -> tuple[tuple[TestId, ...], ...]:
        """FAIL_TO_PASS of each change, verified alone."""
        return tuple(_list_fail_to_pass(part) for part in self.parts)


def are_related(lineage: Lineage, other: Lineage) -> bool:
    """Return whether two changes touch a common source file, or have FAIL_TO_PASS tests in a common file."""
    files = [set(part.candidate.gold_files) for part in (lineage, other)]
    tests = [{test.partition("::")[0] for test in _list_fail_to_pass(part)} for part in (lineage, other)]
    return bool(files[0] & files[1] or tests[0] & tests[1])


def share_folder(lineage: Lineage, other: Lineage) -> bool:
    """Return whether two changes touch a common folder or file of sources."""
    folders = [
        {str(PurePosixPath(path).parent) for path in part.candidate.gold_files} - {"."} for part in (lineage, other)
    ]
    return bool(folders[0] & folders[1] or set(lineage.candidate.gold_files) & set(other.candidate.gold_files))


def select_related(newest: Lineage, older: Sequence[Lineage], services: Services, tree: GitRepository) -> list[Lineage]:
    """Return a change and older changes that are related to it or to each other and apply together, oldest first.

    Args:
        newest: the change.
        older: candidates for further parts, newest first.
        services: services that provide artifacts.
        tree: tree that contains the base commits.
    """
    chosen = [newest]
    for part in older:
        if len(chosen) == MAX_PARTS:
            break
        if any(are_related(part, member) for member in chosen):
            try:
                ChangeChain.from_lineages([part, *chosen], services, tree)
            except GitError:
                continue
            chosen.insert(0, part)
    return chosen


def _list_fail_to_pass(part: Lineage) -> tuple[TestId, ...]:
    return tuple(test for test, _ in part.require_verification().FAIL_TO_PASS)
