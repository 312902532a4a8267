from __future__ import annotations

import os
from pathlib import Path

import pytest

from backends.git import GitError, GitRepository, list_patch_paths, list_patch_renames, run_git
from core.errors import MachineError
from tests.helpers import TinyRepo


@pytest.fixture
def tiny(tmp_path: Path) -> TinyRepo:
    repo = TinyRepo(tmp_path / "repo")
    repo.commit("One", {"a.py": "x = 1\n", "b/c.bin": bytes(range(256)), "empty": ""})
    return repo


def test_files_are_listed_and_read(tiny: TinyRepo) -> None:
    repository = GitRepository(tiny.path)
    entries = {entry.path: entry for entry in repository.ls_tree("HEAD")}
    assert {path: entry.size for path, entry in entries.items()} == {"a.py": 6, "b/c.bin": 256, "empty": 0}
    contents = repository.read_blobs([entries["b/c.bin"].oid, entries["empty"].oid, entries["a.py"].oid])
    assert list(contents) == [bytes(range(256)), b"", b"x = 1\n"]
    assert repository.read_file("HEAD", "a.py") == b"x = 1\n"
    assert repository.read_file("HEAD", "none") is None


def test_a_failure_is_gits_own_last_line(tiny: TinyRepo) -> None:
    with pytest.raises(GitError, match=r"git cat-file: .*nothing"):
        run_git("cat-file", "blob", "nothing", cwd=tiny.path)


def test_the_files_of_a_patch_do_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = TinyRepo(tmp_path / "repo")
    old = repo.commit("One", {"sub/a.py": "x = 1\n" * 9, "b.py": "y = 1\n", "gone.py": "z\n"})
    odd = os.fsdecode(b"d/\xff \t.py")
    new = repo.commit(
        "Two", {"sub/a.py": None, "moved.py": "x = 1\n" * 9, "b.py": "y = 2\n", "gone.py": None, odd: "w\n"}
    )
    patch = GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", "-M", old, new)
    monkeypatch.chdir(repo.path / "d")
    assert sorted(list_patch_paths(patch)) == sorted(["b.py", "gone.py", "moved.py", odd])
    assert list_patch_renames(patch) == {"moved.py": "sub/a.py"}
    assert list_patch_paths(b"") == []
    assert list_patch_renames(b"") == {}
    with pytest.raises(GitError, match="git apply"):
        list_patch_paths(b"--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-y\n")


def test_a_stream_sends_input_and_yields_output(tiny: TinyRepo) -> None:
    head = tiny.git("rev-parse", "HEAD")
    blocks = GitRepository(tiny.path).stream("rev-list", "--stdin", data=[f"{head}\n".encode()])
    assert b"".join(blocks).decode().strip() == head
    with pytest.raises(GitError):
        list(GitRepository(tiny.path).stream("rev-list", "nothing"))


def test_a_stream_through_a_second_command_reports_failures_of_both(tiny: TinyRepo) -> None:
    fixed = tiny.commit("Fix it", {"a.py": "x = 3\n"})
    repository, ids = GitRepository(tiny.path), ("patch-id", "--stable")
    output = b"".join(repository.stream("diff-tree", "--stdin", "-p", data=[f"{fixed}\n".encode()], through=ids))
    assert output == repository.run_git("patch-id", "--stable", data=repository.run_git("diff-tree", "-p", fixed))
    for first, second in (("frob", ids), ("diff-tree", ("frob",))):
        with pytest.raises(GitError, match="frob"):
            list(repository.stream(first, data=[], through=second))


def test_closing_a_stream_early_ends_git(tiny: TinyRepo) -> None:
    blocks = GitRepository(tiny.path).stream("cat-file", "--batch-all-objects", "--batch")
    assert next(blocks)
    blocks.close()  # type: ignore[attr-defined]


def test_a_users_configuration_is_not_executed(tiny: TinyRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "ran"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[alias]\n\tx = "!touch {mark}"\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(GitError):
        run_git("x", cwd=tiny.path)
    assert not mark.exists()
    assert GitRepository(tiny.path).has_commit("HEAD")


def test_replaced_objects_are_read_in_their_original_form(tiny: TinyRepo) -> None:
    first = tiny.git("rev-parse", "HEAD")
    second = tiny.commit("Two", {"a.py": "x = 2\n"})
    tiny.git("replace", second, first)
    assert GitRepository(tiny.path).read_file(second, "a.py") == b"x = 2\n"


@pytest.mark.parametrize("kind", ["work tree", "bare", "linked", "folder", "of a submodule"])
def test_the_objects_are_in_the_folder_that_git_names(kind: str, tiny: TinyRepo, tmp_path: Path) -> None:
    path = tmp_path / kind
    if kind == "work tree":
        path = tiny.path
    elif kind == "bare":
        tiny.git("clone", "-q", "--bare", str(tiny.path), str(path))
    elif kind == "linked":
        tiny.git("worktree", "add", "-q", "--detach", str(path))
    elif kind == "folder":  # of a work tree
        path = tiny.path / "b"
    else:
        tiny.git("clone", "-q", f"--separate-git-dir={tmp_path / 'modules'}", str(tiny.path), str(path))
    folder = GitRepository(path).objects_folder
    assert folder == Path(tiny.git("-C", str(path), "rev-parse", "--path-format=absolute", "--git-path", "objects"))
    assert folder.is_dir()


def test_names_that_are_not_utf8_survive(tiny: TinyRepo) -> None:
    with open(os.fsencode(tiny.path) + b"/caf\xe9", "w", encoding="utf-8") as file:  # noqa: PTH123 - a name in bytes
        file.write("x")
    tiny.commit("Two", {})
    assert "caf\udce9" in {entry.path for entry in GitRepository(tiny.path).ls_tree("HEAD")}


def test_missing_git_is_reported_with_the_command_that_installs_it(
    tiny: TinyRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="git is not installed"):
        run_git("status", cwd=tiny.path)
