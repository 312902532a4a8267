"""Combination of patches: changes of a repository as a patch to the oldest base commit, with and without each."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from backends.git import GitError, GitRepository, run_git
from backends.index import ScratchIndex
from backends.sandbox.container_names import make_folder_prefix


def stack_patches(repository: GitRepository, base: str, *patches: bytes) -> bytes:
    """Return a patch to `base` that applies all patches in order.

    Each is applied by a three-way merge from the file it was made for, where the repository contains that file.

    Raises:
        GitError: a patch does not apply, or conflicts with an earlier.
    """
    with ScratchIndex(repository, base) as index:
        for patch in patches:
            index.apply(patch, "--3way")
        return index.diff()


def leave_out_patch(repository: GitRepository, base: str, patches: Sequence[bytes], left_out: int) -> bytes | None:
    """Return a patch to `base` that applies all of some patches in order, except one.

    Lines that the one and a later patch change are taken from the later. None where the others depend on the one: they
    change a file that it adds.

    Args:
        repository: repository that contains `base`.
        base: a commit.
        patches: they apply to it in this order.
        left_out: index of the patch to leave out.
    """
    others = [patch for number, patch in enumerate(patches) if number != left_out]
    with suppress(GitError):
        return stack_patches(repository, base, *others)
    with suppress(GitError), ScratchIndex(repository, base) as index:
        for patch in patches:  # adjacent lines conflict in the merge above, but not here
            index.apply(patch, "--3way")
        index.apply(patches[left_out], "--reverse", "-C0")
        return index.diff()
    with ScratchIndex(repository, base) as index:
        for patch in others:
            if not _apply_later_side(index, patch):
                return None
        return index.diff()


def _apply_later_side(index: ScratchIndex, patch: bytes) -> bool:
    """Apply a patch, conflicts in its favour; return False where a file in conflict has not three versions."""
    try:
        index.apply(patch, "--3way")
    except GitError:
        conflicts = {path: _merge_later_side(index, path) for path in _list_conflicts(index)}
        for path, content in conflicts.items():
            if content is None:
                return False
            index.write_file(path, content)
        return bool(conflicts)
    return True


def _list_conflicts(index: ScratchIndex) -> list[str]:
    rows = index.run_git("ls-files", "-u", "-z").split(b"\0")[:-1]
    return sorted({row.partition(b"\t")[2].decode(errors="surrogateescape") for row in rows})


def _merge_later_side(index: ScratchIndex, path: str) -> bytes | None:
    """Return a file in conflict, merged in favour of the later side; None where it has not three versions."""
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("merge")) as name:
        sides = [Path(name, side) for side in ("base", "ours", "theirs")]
        for stage, side in enumerate(sides, start=1):
            try:
                side.write_bytes(index.run_git("cat-file", "blob", f":{stage}:{path}"))
            except GitError:
                return None
        base, ours, theirs = map(str, sides)
        try:
            return run_git("merge-file", "-p", "--theirs", ours, base, theirs)
        except GitError:  # a binary file
            return None
