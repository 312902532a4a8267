"""Small source trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backends.git import GitRepository
from backends.tree import CommitTree
from tests.helpers import TinyRepo


def build_tree(tmp_path: Path, files: Mapping[str, str]) -> CommitTree:
    """Return a tree with these files."""
    repo = TinyRepo(tmp_path / "repo")
    return CommitTree(GitRepository(repo.path), repo.commit("Start", dict(files)))
