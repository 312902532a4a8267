from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from backends.git import Repository, git
from builders import seed
from tests.helpers import TinyRepo


def history(tmp_path: Path) -> tuple[TinyRepo, str]:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", {"a.py": "old = 1\n", "bin/run": "#!/bin/sh\n", "dos.txt": b"a\r\nb\r\n"})
    repo.git("tag", "v1")
    repo.commit("fix", {"a.py": "the_secret_fix = 2\n"})
    return repo, base


def test_the_seed_holds_the_base_tree_and_nothing_of_the_future(tmp_path: Path) -> None:
    repo, base = history(tmp_path)
    seed.make(Repository(repo.path), base, tmp_path / "seed")
    made = Repository(tmp_path / "seed")
    assert made.tree_id("HEAD") == repo.git("rev-parse", f"{base}^{{tree}}")
    everything = made.git("cat-file", "--batch-all-objects", "--batch-check").decode()
    assert everything.count(" commit ") == 1
    assert b"secret" not in b"".join(made.blobs(r.split()[0] for r in everything.splitlines() if " blob " in r))
    assert made.git("for-each-ref", "--format=%(refname)").decode().split() == ["refs/heads/main"]
    assert not (made.path / ".git" / "logs").exists()
    assert not (made.path / ".git" / "hooks").exists()
    assert made.git("status", "--porcelain") == b""


def test_the_same_tree_gives_the_same_commit_and_stream(tmp_path: Path) -> None:
    repo, base = history(tmp_path)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--bare", str(repo.path), str(clone)], check=True)
    one = seed.make(Repository(repo.path), base, tmp_path / "one")
    other = seed.make(Repository(clone), base, tmp_path / "other")
    assert one == other


def test_the_stream_is_owned_by_the_tests_user_and_keeps_modes(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    repo.write({"run.sh": "#!/bin/sh\n"})
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link").symlink_to("run.sh")
    base = repo.commit("base", {"a.txt": b"a\r\n"})
    with (
        seed.tar_stream(Repository(repo.path), base, at="/testbed") as stream,
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


def test_a_clone_that_lacks_a_file_is_told_from_a_bug(tmp_path: Path) -> None:
    repo, base = history(tmp_path)
    oid = repo.git("rev-parse", f"{base}:a.py")
    (repo.path / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(seed.IncompleteCloneError):
        seed.make(Repository(repo.path), base, tmp_path / "seed")


def test_attributes_of_the_repository_are_honoured_at_checkout(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", {".gitattributes": "*.bat text eol=crlf\n", "a.bat": "x\n"})
    seed.make(Repository(repo.path), base, tmp_path / "seed")
    assert (tmp_path / "seed" / "a.bat").read_bytes() == b"x\r\n"
    assert git("status", "--porcelain", cwd=tmp_path / "seed") == b""
