from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from backends.git import GitRepository, run_git
from builders import source_tree
from tests.helpers import TinyRepo


def make_history(tmp_path: Path) -> tuple[TinyRepo, str]:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", {"a.py": "old = 1\n", "bin/run": "#!/bin/sh\n", "dos.txt": b"a\r\nb\r\n"})
    repo.git("tag", "v1")
    repo.commit("fix", {"a.py": "the_secret_fix = 2\n"})
    return repo, base


def test_the_repository_contains_the_base_tree_and_no_later_object(tmp_path: Path) -> None:
    repo, base = make_history(tmp_path)
    source_tree.create_repository(GitRepository(repo.path), base, tmp_path / "tree")
    created = GitRepository(tmp_path / "tree")
    assert created.resolve_tree("HEAD") == repo.git("rev-parse", f"{base}^{{tree}}")
    everything = created.run_git("cat-file", "--batch-all-objects", "--batch-check").decode()
    assert everything.count(" commit ") == 1
    assert b"secret" not in b"".join(created.read_blobs(r.split()[0] for r in everything.splitlines() if " blob " in r))
    assert created.run_git("for-each-ref", "--format=%(refname)").decode().split() == ["refs/heads/main"]
    assert not (created.path / ".git" / "logs").exists()
    assert not (created.path / ".git" / "hooks").exists()
    assert created.run_git("status", "--porcelain") == b""


def test_the_same_tree_gives_the_same_commit_and_stream(tmp_path: Path) -> None:
    repo, base = make_history(tmp_path)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--bare", str(repo.path), str(clone)], check=True)
    repository = source_tree.create_repository(GitRepository(repo.path), base, tmp_path / "one")
    other = source_tree.create_repository(GitRepository(clone), base, tmp_path / "other")
    assert repository == other


def test_the_stream_is_owned_by_the_test_user_and_keeps_modes(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    repo.write({"run.sh": "#!/bin/sh\n"})
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link").symlink_to("run.sh")
    base = repo.commit("base", {"a.txt": b"a\r\n"})
    with (
        source_tree.open_tree_tar(GitRepository(repo.path), base, at="/testbed") as stream,
        tarfile.open(fileobj=io.BytesIO(stream.read())) as tar,
    ):
        members = {m.name: m for m in tar}
        content = tar.extractfile("testbed/a.txt")
        assert content is not None
        assert content.read() == b"a\r\n"
    assert {m.uid for m in members.values()} == {m.gid for m in members.values()} == {1000}
    assert members["testbed/run.sh"].mode == 0o755
    assert members["testbed/a.txt"].mode == 0o644
    assert members["testbed/link"].linkname == "run.sh"
    assert members["testbed/.git/HEAD"].mtime == members["testbed"].mtime


def test_a_clone_that_lacks_a_file_raises_incomplete_clone(tmp_path: Path) -> None:
    repo, base = make_history(tmp_path)
    oid = repo.git("rev-parse", f"{base}:a.py")
    (repo.path / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(source_tree.IncompleteCloneError):
        source_tree.create_repository(GitRepository(repo.path), base, tmp_path / "tree")


def test_attributes_of_the_repository_are_honoured_at_checkout(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", {".gitattributes": "*.bat text eol=crlf\n", "a.bat": "x\n"})
    source_tree.create_repository(GitRepository(repo.path), base, tmp_path / "tree")
    assert (tmp_path / "tree" / "a.bat").read_bytes() == b"x\r\n"
    assert run_git("status", "--porcelain", cwd=tmp_path / "tree") == b""
