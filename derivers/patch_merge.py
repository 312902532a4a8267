"""Combination of patches: two changes of one repository as one patch to the older base commit, and each alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from backends.git import GitError, GitRepository, run_git
from backends.index import ScratchIndex


def stack_patches(repository: GitRepository, base: str, *patches: bytes) -> bytes:
    """Return one patch to `base` that applies all patches in order.

    Each is applied by a three-way merge from the file it was made for, where the repository contains that file.

    Raises:
        GitError: a patch does not apply, or conflicts with an earlier one.
    """
    with ScratchIndex(repository, base) as index:
        for patch in patches:
            index.apply(patch, "--3way")
        return index.diff()


def isolate_patch(repository: GitRepository, base: str, first: bytes, second: bytes) -> bytes | None:
    """Return the second of two patches as a patch to `base` without the first one.

    Lines that both change are taken from the second. None where it depends on the first: it changes a file that
    `base` does not contain.
    """
    with ScratchIndex(repository, base) as index:
        try:
            index.apply(second, "--3way")
            return index.diff()
        except GitError:
            conflicts = {path: _merge_later_side(index, path) for path in _list_conflicts(index)}
    with ScratchIndex(repository, base) as index:  # adjacent lines conflict in the merge above, but not here
        try:
            index.apply(first)
            index.apply(second, "--3way")
            index.apply(first, "--reverse", "-C0")
            return index.diff()
        except GitError:
            return _resolve_conflicts(repository, base, second, conflicts)


def _resolve_conflicts(
    repository: GitRepository, base: str, patch: bytes, conflicts: Mapping[str, bytes | None]
) -> bytes | None:
    """Return the patch with the given contents of the files in conflict."""
    with ScratchIndex(repository, base) as index:
        with suppress(GitError):
            index.apply(patch, "--3way")
        for path, content in conflicts.items():
            if content is None:
                return None
            index.write_file(path, content)
        return index.diff() if conflicts else None


def _list_conflicts(index: ScratchIndex) -> list[str]:
    rows = index.run_git("ls-files", "-u", "-z").split(b"\0")[:-1]
    return sorted({row.partition(b"\t")[2].decode(errors="surrogateescape") for row in rows})


def _merge_later_side(index: ScratchIndex, path: str) -> bytes | None:
    """Return a file in conflict, merged in favour of the later side; None where it has not three versions."""
    with tempfile.TemporaryDirectory(prefix="mergemill-") as name:
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
