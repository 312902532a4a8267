"""The read-only interface of a repository at a commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class SourceTreeEntry(Protocol):
    """A file, link (mode 120000) or submodule (160000) of the tree."""

    @property
    def path(self) -> str:
        """Posix path relative to the root."""

    @property
    def mode(self) -> str:
        """Git file mode, such as `100644`."""

    @property
    def oid(self) -> str:
        """Object id of the blob."""

    @property
    def size(self) -> int:
        """Size in bytes."""


class SourceTree(Protocol):
    """A read-only view of a repository at a commit; `backends.tree.CommitTree` implements it for git."""

    @property
    def entries(self) -> Mapping[str, SourceTreeEntry]:
        """Path -> entry of every file, link and submodule."""

    @property
    def folders(self) -> frozenset[str]:
        """All folders except the root, without trailing slash."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists at the path."""

    def is_file(self, path: str) -> bool:
        """Return whether a regular file or link exists at the path."""

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match a shell pattern, sorted; `*` also matches slashes."""

    def submodules(self) -> list[str]:
        """Return the paths of submodules, sorted."""

    def read(self, path: str) -> str:
        """Return the text of a file; empty if it does not exist or is too large."""

    def read_many(self, paths: list[str]) -> dict[str, str]:
        """Return path -> text of several files, each as by `read`."""
