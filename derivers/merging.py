"""Patches laid over patches: what two changes of one repository come to on the older one's base."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from backends.git import GitError, Repository, git
from backends.index import ScratchIndex


def on_top(repository: Repository, base: str, *patches: bytes) -> bytes:
    """One patch to `base` for all of them, each applied to what those before it left.

    A patch is applied as git merges: from the file it was made for, where the repository has it.

    Raises:
        GitError: one does not apply, or changes lines that another has changed otherwise.
    """
    with ScratchIndex(repository, base) as index:
        for patch in patches:
            index.apply(patch, "--3way")
        return index.diff()


def without(repository: Repository, base: str, first: bytes, second: bytes) -> bytes | None:
    """What the second of two patches comes to on `base` without the first one, as a patch.

    Where both change the very same lines, the second one's stand. None where it has no place without the first: it
    changes a file that is not there yet.
    """
    with ScratchIndex(repository, base) as index:
        try:
            index.apply(second, "--3way")
            return index.diff()
        except GitError:
            conflicts = {path: _later_lines(index, path) for path in _unmerged(index)}
    with ScratchIndex(repository, base) as index:  # lines next to each other conflict, too, and need not
        try:
            index.apply(first)
            index.apply(second, "--3way")
            index.apply(first, "--reverse", "-C0")
            return index.diff()
        except GitError:
            return _with_later_lines(repository, base, second, conflicts)


def _with_later_lines(
    repository: Repository, base: str, patch: bytes, conflicts: Mapping[str, bytes | None]
) -> bytes | None:
    """The patch with given contents where it conflicts."""
    with ScratchIndex(repository, base) as index:
        with suppress(GitError):
            index.apply(patch, "--3way")
        for path, content in conflicts.items():
            if content is None:
                return None
            index.write(path, content)
        return index.diff() if conflicts else None


def _unmerged(index: ScratchIndex) -> list[str]:
    rows = index.git("ls-files", "-u", "-z").split(b"\0")[:-1]
    return sorted({row.partition(b"\t")[2].decode(errors="surrogateescape") for row in rows})


def _later_lines(index: ScratchIndex, path: str) -> bytes | None:
    """The three sides of a conflict as one file, with the later side's lines; None where there are not three."""
    with tempfile.TemporaryDirectory(prefix="mergemill-") as name:
        sides = [Path(name, side) for side in ("base", "ours", "theirs")]
        for stage, side in enumerate(sides, start=1):
            try:
                side.write_bytes(index.git("cat-file", "blob", f":{stage}:{path}"))
            except GitError:
                return None
        base, ours, theirs = map(str, sides)
        try:
            return git("merge-file", "-p", "--theirs", ours, base, theirs)
        except GitError:  # a binary file
            return None
