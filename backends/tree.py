"""Read-only view of a repository at a commit, read from git objects without a checkout."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cached_property

from backends.git import GitRepository, TreeEntry

_MAX_FILE_BYTES = 2 * 1024 * 1024
"""Larger files (bytes) are data, which no detector reads."""


class CommitTree:
    """Files of a commit. They are listed by a single `ls-tree` on first use; each content is read once."""

    def __init__(self, repository: GitRepository, commit: str) -> None:
        self.repository = repository
        self.commit = commit
        self._texts: dict[str, str] = {}

    @cached_property
    def entries(self) -> dict[str, TreeEntry]:
        """Path -> entry of every file, link and submodule."""
        return {entry.path: entry for entry in self.repository.ls_tree(self.commit)}

    @cached_property
    def folders(self) -> frozenset[str]:
        """All folders, without trailing slash; not the root."""
        folders: set[str] = set()
        for path in self.entries:
            parent = path.rpartition("/")[0]
            while parent and parent not in folders:
                folders.add(parent)
                parent = parent.rpartition("/")[0]
        return frozenset(folders)

    def exists(self, path: str) -> bool:
        """Return whether the path (posix, from the root; a trailing slash is ignored) is a file or folder."""
        path = path.rstrip("/")
        return path in self.entries or path in self.folders

    def is_file(self, path: str) -> bool:
        """Return whether the path is a regular file or link."""
        entry = self.entries.get(path)
        return entry is not None and entry.mode != "160000"

    def glob(self, pattern: str) -> list[str]:
        """Return paths that match a shell pattern, sorted; `*` also matches slashes."""
        regex = re.compile(translate(pattern))
        return sorted(path for path in self.entries if regex.match(path))

    def submodules(self) -> list[str]:
        """Return paths of submodules; a clone of a repository does not contain their files."""
        return sorted(path for path, entry in self.entries.items() if entry.mode == "160000")

    def read(self, path: str) -> str:
        """Return a file as text (UTF-8, invalid bytes replaced); empty when it does not exist or is too large."""
        return self.read_many([path])[path]

    def read_many(self, paths: list[str]) -> dict[str, str]:
        """Return path -> text of several files, through a single pipe; see `read`."""
        new = [p for p in paths if p not in self._texts and self.is_file(p) and self.entries[p].size <= _MAX_FILE_BYTES]
        contents = self.repository.read_blobs(self.entries[path].oid for path in new)
        self._texts.update({path: blob.decode(errors="replace") for path, blob in zip(new, contents, strict=True)})
        return {path: self._texts.get(path, "") for path in paths}
