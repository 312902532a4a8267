"""What a language may ask of a repository at one commit: read it, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Entry(Protocol):
    """A file, link (mode 120000) or submodule (160000) of the tree."""

    @property
    def path(self) -> str:
        """Posix, from the root."""

    @property
    def mode(self) -> str:
        """Git's mode, such as `100644`."""

    @property
    def oid(self) -> str:
        """Id of the blob."""

    @property
    def size(self) -> int:
        """Bytes."""


class Tree(Protocol):
    """A read-only view of a repository at one commit; `backends.tree.Tree` is the one over git objects."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Path -> entry of every file, link and submodule."""

    @property
    def folders(self) -> frozenset[str]:
        """All folders, without trailing slash; not the root."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of that path."""

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file or link of that path."""

    def glob(self, pattern: str) -> list[str]:
        """Paths that match a shell pattern, sorted; `*` also matches slashes."""

    def submodules(self) -> list[str]:
        """Paths of submodules, sorted."""

    def read(self, path: str) -> str:
        """A file as text, empty when there is no such file or it is huge."""

    def read_many(self, paths: list[str]) -> dict[str, str]:
        """Several files at once; as `read`."""
