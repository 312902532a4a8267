"""Small trees that languages read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backends.git import Repository
from backends.tree import Tree
from tests.helpers import TinyRepo


def tree_of(tmp_path: Path, files: Mapping[str, str]) -> Tree:
    """A tree with these files."""
    repo = TinyRepo(tmp_path / "repo")
    return Tree(Repository(repo.path), repo.commit("Start", dict(files)))
