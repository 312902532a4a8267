"""Base trees in the store: the trees that tasks start from, kept so that no clone is needed after a task is derived.

::

    <store>/trees/OWNER__NAME-HASH.git    a bare, shallow repository for each repository that tasks come from
    <store>/trees/OWNER__NAME-HASH.lock   held while a commit is added

A base commit is stored without its history: the commit, its tree and the objects that no other kept tree has. The
packs are combined now and then, which stores similar files of different commits as differences.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from backends.git import GitError, GitRepository, build_git_environment, run_git
from backends.sandbox.container_names import make_folder_prefix
from core.errors import InputError, make_write_error

MAX_PACK_BYTES = 16 << 30
"""Size of a pack file from another machine."""
MAX_UNPACK_SECONDS = 1800
"""Processor time that git may spend on a pack file from another machine."""
MAX_MEMORY_KB = 16 << 20
"""Address space of git while it reads such a file, in KiB."""
MAX_PACKS = 16
"""Packs of a repository after which they are combined."""
_REF = "refs/trees/"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OID_LENGTH_SHA256 = 64
_UNSAFE_NAMES = {"", ".", "..", ".git"}


class BaseTreeStore:
    """Folder of base trees. Threads and processes may add trees concurrently.

    Args:
        folder: folder of the repositories; created when the first tree is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # git runs in other folders

    def find(self, repo: str, commit: str) -> GitRepository | None:
        """Return a repository that contains the commit and its tree, but no history; None when it is not kept."""
        path = self.locate(repo)
        return GitRepository(path) if commit in _read_commits(path) else None

    def list_kept(self, repo: str) -> frozenset[str]:
        """Return the commits of `owner/name` whose trees are kept."""
        return frozenset(_read_commits(self.locate(repo)))

    def keep(self, repo: str, commit: str, history: GitRepository) -> None:
        """Copy a commit and its tree from a repository, which is only read; a commit that is kept is not copied again.

        Args:
            repo: `owner/name`.
            commit: its full object id.
            history: history that contains the commit.

        Raises:
            InputError: `commit` is not an object id, objects are missing, or writing is not permitted.
            Transient: the disk is full.
        """
        if not _COMMIT.fullmatch(commit):
            raise InputError(f"{commit!r} is not the id of a commit")
        path = self.locate(repo)
        if commit in _read_commits(path):
            return
        try:
            with self._lock(path):
                if commit not in _read_commits(path):
                    _add_commit(path, commit, history)
        except OSError as error:
            raise make_write_error(f"cannot write {path}", error, advice="free some space") from error

    def write_pack(self, repo: str, commits: Sequence[str], target: Path) -> None:
        """Write kept commits with their trees to a pack file; equal commits give equal bytes with a version of git.

        Raises:
            InputError: a commit is not kept.
        """
        repository = GitRepository(self.locate(repo))
        kept = _read_commits(repository.path)
        if missing := sorted(set(commits) - set(kept)):
            raise InputError(f"the base tree {missing[0][:12]} of {repo} is not in {self.folder}")
        wanted = "".join(f"{row}\n" for row in _list_objects(repository, sorted(set(commits)), {}))
        settings = ("-c", "pack.threads=1", "-c", "pack.compression=6")
        command = ("pack-objects", "--stdout", "-q", "--no-reuse-delta", "--no-reuse-object", "--delta-base-offset")
        with target.open("wb") as file:
            for block in repository.stream(*settings, *command, data=[wanted.encode(errors="surrogateescape")]):
                file.write(block)

    def locate(self, repo: str) -> Path:
        """Return the path of a repository's trees; no name leads out of the folder."""
        lower = repo.lower()
        readable = re.sub(r"[^a-z0-9._-]", "-", lower.replace("/", "__")).lstrip(".-")[:100]
        digest = hashlib.sha256(lower.encode(errors="surrogateescape")).hexdigest()[:8]
        return self.folder / f"{readable}-{digest}.git"

    @contextmanager
    def _lock(self, path: Path) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _read_commits(path: Path) -> list[str]:
    """Return the commits that a repository has completely: those listed as shallow, which is written last."""
    try:
        return (path / "shallow").read_text().split()
    except OSError:
        return []


def _add_commit(path: Path, commit: str, history: GitRepository) -> None:
    """Copy the objects of a commit that are missing at `path`; the caller holds the lock."""
    kept = GitRepository(path)
    if not (path / "config").exists() or not (path / "objects").exists():  # or its creation was killed
        object_format = "sha256" if len(commit) == _OID_LENGTH_SHA256 else "sha1"
        run_git("init", "-q", "--bare", "--template=", f"--object-format={object_format}", str(path))
    for stale in (*path.rglob("*.lock"), *(path / "objects" / "pack").glob("tmp_*")):  # of a git that was killed
        stale.unlink()
    borrowed = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote_path(history.objects_folder)}
    rows = _list_objects(kept, [commit], borrowed)
    names = "".join(f"{row.partition(' ')[0]}\n" for row in rows).encode()
    states = kept.run_git("cat-file", "--batch-check=%(objecttype)", data=names)
    missing = [row for row, state in zip(rows, states.splitlines(), strict=True) if state.endswith(b" missing")]
    if missing:
        listed = "".join(f"{row}\n" for row in missing).encode(errors="surrogateescape")
        pack = str(path / "objects" / "pack" / "pack")
        kept.run_git("pack-objects", "-q", "--delta-base-offset", pack, data=listed, env=borrowed)
    kept.run_git("update-ref", f"{_REF}{commit}", commit)
    partial = path / "shallow.partial"
    partial.write_text("".join(f"{sha}\n" for sha in sorted({*_read_commits(path), commit})))
    partial.replace(path / "shallow")
    if len(list((path / "objects" / "pack").glob("*.pack"))) > MAX_PACKS:
        kept.run_git("repack", "-a", "-d", "-q", "-n")


@contextmanager
def open_pack(pack: Path, commits: Sequence[str]) -> Iterator[GitRepository]:
    """Open a pack file of unknown origin as a temporary repository, after checking all of it.

    Args:
        pack: file that `BaseTreeStore.write_pack` of this or another machine wrote.
        commits: those that it must contain with their trees.

    Raises:
        InputError: the pack is damaged or too large, or lacks a commit, or a tree has a path that leads out of it.
    """
    if invalid := [commit for commit in commits if not _COMMIT.fullmatch(commit)]:
        raise InputError(f"{invalid[0]!r} is not the id of a commit")
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("trees"), ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "received.git"
        object_format = "sha256" if any(len(commit) == _OID_LENGTH_SHA256 for commit in commits) else "sha1"
        run_git("init", "-q", "--bare", "--template=", f"--object-format={object_format}", str(path))
        _index_pack(pack, path)
        repository = GitRepository(path)
        for commit in commits:
            for entry in repository.ls_tree(commit):
                if _UNSAFE_NAMES & set(entry.path.lower().split("/")):
                    raise InputError(f"{pack.name} has a file {entry.path[:200]!r}, which leads out of its tree")
            _list_objects(repository, [commit], {})
        yield repository


def _index_pack(pack: Path, path: Path) -> None:
    """Add a pack file to the repository at `path`, within limits of time and memory."""
    limits = f"ulimit -t {MAX_UNPACK_SECONDS} -v {MAX_MEMORY_KB}"
    with pack.open("rb") as file:
        done = subprocess.run(
            ["sh", "-c", f"{limits}; exec git index-pack --stdin --max-input-size={MAX_PACK_BYTES}"],
            cwd=path,
            stdin=file,
            capture_output=True,
            check=False,
            env=build_git_environment() | {"GIT_DIR": str(path)},
        )
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it takes too long to unpack"]
        raise InputError(f"{pack.name} is no sound pack of base trees: {lines[-1][:200]!r}")


def _list_objects(repository: GitRepository, commits: Sequence[str], env: dict[str, str]) -> list[str]:
    """Return `OID PATH` of the commits and of every object in their trees.

    Raises:
        GitError: an object is missing.
    """
    trees = "".join(f"{commit}^{{tree}}\n" for commit in commits).encode()
    try:
        listed = repository.run_git("rev-list", "--objects", "--stdin", data=trees, env=env)
    except GitError as error:
        raise GitError(f"the tree of {commits[0][:12]} is incomplete: {error}") from error
    return [*commits, *listed.decode(errors="surrogateescape").splitlines()]


def _quote_path(path: Path) -> str:
    """Return a path for GIT_ALTERNATE_OBJECT_DIRECTORIES, quoted where it holds the separator."""
    text = os.fspath(path)
    if os.pathsep not in text and not text.startswith('"'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
