"""The tree at the base commit as a git repository of a single commit, and as a tar stream for a container.

Only objects of exactly that tree leave the clone: no other commit, no tags, no remotes, no reflogs, no hooks.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from backends.git import GitError, GitRepository, run_git
from backends.sandbox.container_names import make_folder_prefix
from backends.tree_tar import OWNER_ID

COMMIT_MESSAGE = "Base commit"
_AUTHOR = "mergemill"
_EMAIL = "mergemill@localhost"

_CONFIG = f"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = false
\ttrustctime = false
\tcheckStat = minimal
[gc]
\tauto = 0
[user]
\tname = {_AUTHOR}
\temail = {_EMAIL}
"""
"""`trustctime` and `checkStat`: an image keeps times but not inodes, and git must not read every file again."""


class IncompleteCloneError(Exception):
    """The clone lacks objects of the tree, as a partial or filtered clone does."""


def read_commit_date(source: GitRepository, commit: str) -> int:
    """Return a commit's committer date, in seconds since 1970."""
    return int(source.run_git("log", "-1", "--format=%ct", commit))


def create_repository(source: GitRepository, commit: str, folder: Path) -> str:
    """Create the repository with its work tree in the new folder `folder`; return the id of its commit.

    Raises:
        IncompleteCloneError: the clone lacks objects of the tree.
    """
    created = create_history(source, commit, folder)
    run_git("checkout", "-q", "-f", "main", cwd=folder)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    return created


def create_history(source: GitRepository, commit: str, folder: Path) -> str:
    """Create the repository in the new folder `folder`, without its work tree; return the id of its commit.

    The same tree and date give the same commit on every machine.

    Raises:
        IncompleteCloneError: the clone lacks objects of the tree.
    """
    tree, when = source.resolve_tree(commit), f"{read_commit_date(source, commit)} +0000"
    try:
        pack = source.run_git("pack-objects", "--revs", "--stdout", "--threads=1", "-q", data=f"{tree}\n".encode())
    except GitError as error:
        raise IncompleteCloneError(f"the clone lacks objects of the base commit's tree ({error})") from error
    run_git("init", "-q", "--template=", "-b", "main", str(folder))
    (folder / ".git" / "config").write_text(_CONFIG)
    run_git("index-pack", "--stdin", cwd=folder, data=pack)
    identity = {
        "GIT_AUTHOR_NAME": _AUTHOR,
        "GIT_AUTHOR_EMAIL": _EMAIL,
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": _AUTHOR,
        "GIT_COMMITTER_EMAIL": _EMAIL,
        "GIT_COMMITTER_DATE": when,
    }
    created = run_git("commit-tree", tree, "-m", COMMIT_MESSAGE, cwd=folder, env=identity).decode().strip()
    run_git("update-ref", "refs/heads/main", created, cwd=folder)
    return created


def write_tar(folder: Path, into: IO[bytes], *, at: str, when: int) -> None:
    """Write `folder` as a tar whose names begin with `at` (absolute), owned by the test user, all dated `when`.

    Names are sorted, so equal trees give equal streams.
    """
    with tarfile.open(fileobj=into, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        for path in [folder, *sorted(folder.rglob("*"), key=os.fsencode)]:
            inner = path.relative_to(folder)
            member = tar.gettarinfo(path, arcname=os.path.normpath(f"{at.strip('/')}/{inner}"))
            member.uid = member.gid = OWNER_ID
            member.uname = member.gname = "mergemill"
            member.mtime = when
            # Hard links of the temporary folder are written as separate files.
            if member.islnk():
                member.type, member.size = tarfile.REGTYPE, path.stat().st_size
            if member.isreg() and not path.is_symlink():
                member.mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
                with path.open("rb") as content:
                    tar.addfile(member, content)
            else:
                tar.addfile(member)


@contextmanager
def open_tree_tar(source: GitRepository, commit: str, *, at: str) -> Iterator[IO[bytes]]:
    """Yield the one-commit repository of `commit` as an uncompressed tar, to be unpacked at `/`.

    Raises:
        IncompleteCloneError: as `make`.
    """
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("seed")) as scratch, tempfile.TemporaryFile() as spool:
        folder = Path(scratch) / "tree"
        create_repository(source, commit, folder)
        write_tar(folder, spool, at=at, when=read_commit_date(source, commit))
        shutil.rmtree(folder)
        spool.seek(0)
        yield spool


def write_history_tar(source: GitRepository, commit: str, into: IO[bytes], *, at: str) -> None:
    """Write the one-commit repository of `commit` without its work tree as a tar, to be unpacked at `/`.

    `git checkout -f main` at the place of the tree makes the work tree, sooner than a tar of all files is unpacked.

    Raises:
        IncompleteCloneError: as `create_history`.
    """
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("seed")) as scratch:
        folder = Path(scratch) / "tree"
        create_history(source, commit, folder)
        write_tar(folder, into, at=at, when=read_commit_date(source, commit))


@contextmanager
def open_manifest_tar(
    source: GitRepository, manifests: Sequence[tuple[str, str]], *, at: str
) -> Iterator[IO[bytes] | None]:
    """Yield the files (path, blob id) as a tar to be unpacked at `/`, owned by the test user; None without files.

    Raises:
        IncompleteCloneError: the clone lacks some of them.
    """
    if not manifests:
        yield None
        return
    try:
        contents = list(source.read_blobs([oid for _, oid in manifests]))
    except GitError as error:
        raise IncompleteCloneError(f"the clone lacks files that the build needs ({error})") from error
    with tempfile.TemporaryFile() as spool:
        with tarfile.open(fileobj=spool, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            folders = {str(folder) for path, _ in manifests for folder in PurePosixPath(path).parents}
            for folder in sorted(folders):
                tar.addfile(_create_member(os.path.normpath(f"{at.strip('/')}/{folder}"), tarfile.DIRTYPE))
            for (path, _), content in zip(manifests, contents, strict=True):
                member = _create_member(f"{at.strip('/')}/{path}", tarfile.REGTYPE)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        spool.seek(0)
        yield spool


def _create_member(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode = kind, 0o755 if kind == tarfile.DIRTYPE else 0o644
    member.uid = member.gid = OWNER_ID
    return member
