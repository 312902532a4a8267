"""A commit with patches on top, beside the history it is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitError, Repository
from backends.overlay import patched
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


def history(folder: Path) -> tuple[Repository, str]:
    repo = TinyRepo(folder / "greet")
    commit = repo.commit("base", {"greet.py": "x = 1\n", "tests/test_greet.py": "assert True\n", "keep.txt": "same\n"})
    return Repository(repo.path), commit


def test_the_tree_is_the_commits_with_the_patch_and_the_history_stays_as_it_was(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    before = repo.git("count-objects", "-v")
    with patched(repo, commit, PATCH) as (overlay, made):
        assert {entry.path for entry in overlay.ls_tree(made)} == {"greet.py", "keep.txt"}
        assert overlay.git("show", f"{made}:greet.py") == b"x = 2\n"
    assert repo.git("count-objects", "-v") == before
    assert not repo.has_commit(made)


def test_the_same_patch_gives_the_same_commit(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    with patched(repo, commit, PATCH) as (_, first), patched(repo, commit, PATCH) as (_, again):
        assert first == again


def test_patches_are_applied_one_after_another(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    more = b"diff --git a/greet.py b/greet.py\n--- a/greet.py\n+++ b/greet.py\n@@ -1 +1 @@\n-x = 2\n+x = 3\n"
    with patched(repo, commit, PATCH, b"", more) as (overlay, made):
        assert overlay.git("show", f"{made}:greet.py") == b"x = 3\n"


def test_a_patch_that_does_not_apply_is_told(tmp_path: Path) -> None:
    repo, commit = history(tmp_path)
    with pytest.raises(GitError, match="apply"), patched(repo, commit, PATCH, PATCH):
        pass
