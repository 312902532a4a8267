"""Changes of files that a submission makes to a tree."""

from __future__ import annotations

from pathlib import Path

from backends.git import GitRepository
from evaluation.instructions.changes import ChangedFile
from tests.helpers import TinyRepo
from verifiers.rewards.instructions import list_tree_changes

LONG = "".join(f"line {number}\n" for number in range(20))


def test_both_paths_of_a_renamed_file_and_names_of_any_kind_are_changes(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    repo.commit("Begin", {"a.py": LONG, "grüße/ö.py": "x = 1\n", "gone.txt": "x\n", "run.sh": "true\n"})
    repo.git("mv", "a.py", "b.py")
    repo.git("rm", "-q", "gone.txt")
    repo.git("update-index", "--chmod=+x", "run.sh")
    (tmp_path / "repo/grüße/ö.py").write_text("x = 2\n")
    (tmp_path / "repo/new.py").write_text("y = 1\n")
    repo.git("add", "grüße", "new.py")
    repository = GitRepository(tmp_path / "repo")
    patch = repository.run_git("diff", "--cached", "-M", "--binary", "--no-ext-diff", "HEAD")
    assert b"rename from a.py" in patch
    commit = repository.run_git("rev-parse", "HEAD").decode().strip()
    assert list_tree_changes(repository, commit, patch) == [
        ChangedFile("a.py", LONG.encode(), None),
        ChangedFile("b.py", None, LONG.encode()),
        ChangedFile("gone.txt", b"x\n", None),
        ChangedFile("grüße/ö.py", b"x = 1\n", b"x = 2\n"),
        ChangedFile("new.py", None, b"y = 1\n"),
    ]


def test_a_patch_that_does_not_apply_changes_nothing(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    repo.commit("Begin", {"a.py": "x = 1\n"})
    repository = GitRepository(tmp_path / "repo")
    commit = repository.run_git("rev-parse", "HEAD").decode().strip()
    patch = b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-z = 3\n+z = 4\n"
    assert list_tree_changes(repository, commit, patch) == []
    assert list_tree_changes(repository, commit, b"") == []
