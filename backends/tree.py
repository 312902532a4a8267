"""A read-only view of a repository at one commit: git objects, no checkout, nothing executed."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cached_property

from backends.git import Repository, TreeEntry

_LARGEST = 2 * 1024 * 1024
"""Bytes beyond which a file is data rather than something a detector would read."""


class Tree:
    """The files of one commit. One `ls-tree` when first asked; file contents are read once each."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self.repository = repository
        self.commit = commit
        self._texts: dict[str, str] = {}

    @cached_property
    def entries(self) -> dict[str, TreeEntry]:
        """Path -> entry of every file, link and submodule."""
        return {entry.path: entry for entry in self.repository.ls_tree(self.commit)}

    @cached_property
    def folders(self) -> frozenset[str]:
        """All folders, without trailing slash."""
        found: set[str] = set()
        for path in self.entries:
            parent = path.rpartition("/")[0]
            while parent and parent not in found:
                found.add(parent)
                parent = parent.rpartition("/")[0]
        return frozenset(found)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of that path (posix, from the root; a trailing slash is ignored)."""
        path = path.rstrip("/")
        return path in self.entries or path in self.folders

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file or link of that path."""
        entry = self.entries.get(path)
        return entry is not None and entry.mode != "160000"

    def glob(self, pattern: str) -> list[str]:
        """Paths that match a shell pattern, sorted; `*` also matches slashes."""
        regex = re.compile(translate(pattern))
        return sorted(path for path in self.entries if regex.match(path))

    def submodules(self) -> list[str]:
        """Paths of submodules; a clone of one repository doesn't hold their content."""
        return sorted(path for path, entry in self.entries.items() if entry.mode == "160000")

    def read(self, path: str) -> str:
        """A file as text (UTF-8, strange bytes replaced), empty when there is no such file or it is huge."""
        return self.read_many([path])[path]

    def read_many(self, paths: list[str]) -> dict[str, str]:
        """Several files through one pipe; as `read`."""
        new = [p for p in paths if p not in self._texts and self.is_file(p) and self.entries[p].size <= _LARGEST]
        contents = self.repository.blobs(self.entries[path].oid for path in new)
        self._texts.update({path: blob.decode(errors="replace") for path, blob in zip(new, contents, strict=True)})
        return {path: self._texts.get(path, "") for path in paths}
