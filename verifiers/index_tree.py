"""Submissions applied to an index, as their container does it, for decisions that need no run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from backends.git import GitError
from backends.index import ScratchIndex
from guest.harness.apply_patch import RefusedPatchError, Repairer, Tree


class _IndexTree(Tree):
    """Files of an index, for the repairs of a patch."""

    def __init__(self, index: ScratchIndex) -> None:
        self.index = index
        # One process for all files: each further one takes as long as reading the whole index.
        lines = index.run_git("ls-files", "-s", "-z").split(b"\0")[:-1]
        self.entries = {name: entry.split(b" ") for entry, _, name in (line.partition(b"\t") for line in lines)}
        self.contents: dict[bytes, bytes | None] = {}
        self.files = names = frozenset(self.entries)
        self.folders = frozenset(
            b"/".join(parts[:n]) for parts in (name.split(b"/") for name in names) for n in range(1, len(parts))
        )

    def has_file(self, path: bytes) -> bool:
        return path in self.files

    def has_folder(self, path: bytes) -> bool:
        return path.rstrip(b"/") in self.folders

    def read_file(self, path: bytes) -> bytes | None:
        if path not in self.files:
            return None
        if path not in self.contents:
            self.contents[path] = self.index.read_file(os.fsdecode(path))
        return self.contents[path]

    def read_mode(self, path: bytes) -> bytes:
        return self._read_entry(path)[0]

    def read_object_id(self, path: bytes) -> bytes:
        return self._read_entry(path)[1]

    def _read_entry(self, path: bytes) -> Sequence[bytes]:
        """Return mode and id of a file, empty without one."""
        return self.entries.get(path, (b"", b""))


def apply_submission(patch: bytes, index: ScratchIndex) -> bool:
    """Apply a submission as its container does, and return whether it applied."""
    try:
        candidates = Repairer(patch, _IndexTree(index)).list_candidates() if patch.strip() else [(b"", [], [])]
    except RefusedPatchError:
        return False
    for candidate, options, _ in candidates:
        with suppress(GitError):
            index.apply(candidate, *options)
            return True
    return False
