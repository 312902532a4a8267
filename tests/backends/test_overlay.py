"""Commits with patches on top, made beside the history they are based on."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitError, GitRepository
from backends.overlay import open_patched_commit
from tests.helpers import TinyRepo

PATCH = b"""\
diff --git a/greet.py b/greet.py
--- a/greet.py
+++ b/greet.py
@@ -1 +1 @@
-x = 1
+x = 2
diff --git a/tests/test_greet.py b/tests/test_greet.py
deleted file mode 100644
--- a/tests/test_greet.py
+++ /dev/null
@@ -1 +0,0 @@
-assert True
"""


def history(folder: Path) -> tuple[GitRepository, str]:
    repo = TinyRepo(folder / "greet")
    commit = repo.commit("base", {"greet.py": "x = 1\n", "tests/test_greet.py": "assert True\n", "keep.txt": "same\n"})
    return GitRepository(repo.path), commit


def test_the_patched_tree_is_made_without_changing_the_history(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    before = repo.run_git("count-objects", "-v")
    with open_patched_commit(repo, commit, PATCH) as (overlay, made):
        assert {entry.path for entry in overlay.ls_tree(made)} == {"greet.py", "keep.txt"}
        assert overlay.run_git("show", f"{made}:greet.py") == b"x = 2\n"
    assert repo.run_git("count-objects", "-v") == before
    assert not repo.has_commit(made)


def test_the_same_patch_gives_the_same_commit(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    with open_patched_commit(repo, commit, PATCH) as (_, first), open_patched_commit(repo, commit, PATCH) as (_, again):
        assert first == again


def test_patches_are_applied_one_after_another(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    more = b"diff --git a/greet.py b/greet.py\n--- a/greet.py\n+++ b/greet.py\n@@ -1 +1 @@\n-x = 2\n+x = 3\n"
    with open_patched_commit(repo, commit, PATCH, b"", more) as (overlay, made):
        assert overlay.run_git("show", f"{made}:greet.py") == b"x = 3\n"


def test_a_patch_that_does_not_apply_is_an_error(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    with pytest.raises(GitError, match="apply"), open_patched_commit(repo, commit, PATCH, PATCH):
        pass
