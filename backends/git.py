"""Plain git pipes, for everything that is read in bulk (GitPython's part is clone and fetch, in `backends.clones`).

`Repository` is a read-only view: it never touches a work tree or an index of the repository it reads, and it switches
off what a repository or a user's configuration could make git run (filters, textconv, external diffs, hooks).
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mergemill.errors import InputError, MachineError, Transient

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_SAFE_CONFIG = (
    "core.quotepath=true",
    "core.autocrlf=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "diff.external=",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "safe.directory=*",
)

_AHEAD = 1 << 20
"""Bytes that git may be ahead of its reader: the longest pipe that Linux gives to everybody."""


class GitError(InputError):
    """A git command failed; the message is git's own last line."""


def git_environment() -> dict[str, str]:
    """The environment git is run in: no user's or system's configuration, no prompt, bytes as they are.

    `GIT_FLUSH`: git writes full blocks. Into a pipe it would else write each commit alone, at a quarter more time.
    """
    ours = ("GIT_SSL_CAINFO", "GIT_SSL_NO_VERIFY")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in ours}
    return kept | {
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_NOSYSTEM": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
        "GIT_FLUSH": "0", "LC_ALL": "C",
    }  # fmt: skip


def git(
    *arguments: str, cwd: Path | None = None, data: bytes | None = None, env: Mapping[str, str] | None = None
) -> bytes:
    """Run git with a safe configuration; its standard output.

    Raises:
        GitError: it exited with something else than 0.
        Transient: it was killed (Ctrl-C, no memory).
        MachineError: there is no git.
    """
    config = [part for item in _SAFE_CONFIG for part in ("-c", item)]
    try:
        done = subprocess.run(
            ["git", *config, *arguments], cwd=cwd, input=data, capture_output=True, check=False,
            env=git_environment() | dict(env or {}),
        )  # fmt: skip
    except FileNotFoundError as error:
        if shutil.which("git"):
            raise GitError(f"git {arguments[0]}: there is no folder {cwd}") from error
        raise MachineError("git is not installed", advice="apt-get install -y git") from error
    if done.returncode < 0:
        raise Transient(f"git {arguments[0]} was ended by signal {-done.returncode}")
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise GitError(f"git {arguments[0]}: {lines[-1]}")
    return done.stdout


def _started(command: Sequence[str], cwd: Path, stdin: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    """Git at work in a folder, with a long pipe to its reader."""
    config = [part for item in _SAFE_CONFIG for part in ("-c", item)]
    process = subprocess.Popen(
        ["git", *config, *command], cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=git_environment()
    )
    with suppress(OSError, AttributeError):  # where a long pipe cannot be had, git waits for its reader
        fcntl.fcntl(_stdout(process), fcntl.F_SETPIPE_SZ, _AHEAD)
    return process


def _stdout(process: subprocess.Popen[bytes]) -> io.BufferedReader:
    assert isinstance(process.stdout, io.BufferedReader)  # noqa: S101 - stdout=PIPE gives one
    return process.stdout


def touched(patch: bytes) -> list[str]:
    """The paths of a patch as git reads them, new names of renames; with surrogate escapes where they are not UTF-8.

    Raises:
        GitError: git cannot read it.
    """
    # in `/`, for git leaves out what is not below the folder it is run in, where that is one of a repository
    rows = git("apply", "--numstat", "-z", cwd=Path("/"), data=patch).split(b"\0")[:-1] if patch else []
    return [os.fsdecode(row.split(b"\t", 2)[2]) for row in rows]


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """A file of a tree: `mode` such as `100644` (`160000`: a submodule, `120000`: a link), object id, size in bytes."""

    path: str
    mode: str
    oid: str
    size: int


class Repository:
    """A git repository, bare or not, read by pipes. Paths that are not UTF-8 come with surrogate escapes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """Run git in this repository; its standard output."""
        return git(*arguments, cwd=self.path, data=data, env=env)

    def stream(
        self, *arguments: str, data: Iterable[bytes] | None = None, through: Sequence[str] = (), nice: int = 0
    ) -> Iterator[bytes]:
        """Start git; its standard output in blocks as they come. `data` is fed to it from a spooled file.

        Git is at work from the call on, beside its reader, and goes ahead as far as its pipe is long.

        Args:
            arguments: the command.
            data: its standard input.
            through: a second command; then the blocks are what that one makes of the first one's output.
            nice: by how much git gives way to other processes, 0 to 19.
        """
        blocks = self._blocks([arguments, through] if through else [arguments], data, nice)
        next(blocks)  # runs to where git is started
        return blocks

    def _blocks(self, commands: Sequence[Sequence[str]], data: Iterable[bytes] | None, nice: int) -> Iterator[bytes]:
        """An empty block as soon as the commands run, each on the output of the one before; then what the last says."""
        processes: list[subprocess.Popen[bytes]] = []
        with tempfile.TemporaryFile() as spooled, tempfile.TemporaryFile() as stderr:
            for block in data or ():
                spooled.write(block)
            spooled.seek(0)
            with ExitStack() as running:
                stdin: IO[bytes] = spooled
                for command in commands:
                    processes.append(running.enter_context(_started(command, self.path, stdin, stderr)))
                    stdin.close()  # it is the process's alone now
                    stdin = _stdout(processes[-1])
                    if nice:
                        os.setpriority(os.PRIO_PROCESS, processes[-1].pid, os.getpriority(os.PRIO_PROCESS, 0) + nice)
                try:
                    yield b""
                    while block := _stdout(processes[-1]).read1(_AHEAD):
                        yield block
                except GeneratorExit:
                    for process in processes:
                        process.kill()
                    raise
            for process, command in zip(reversed(processes), reversed(commands), strict=True):
                if process.returncode != 0:
                    stderr.seek(0)
                    lines = stderr.read().decode(errors="replace").strip().splitlines() or ["failed"]
                    raise GitError(f"git {command[0]}: {lines[-1]}")

    @property
    def objects(self) -> Path:
        """The folder of its objects, which others may read as alternates."""
        told = os.fsdecode(self.git("rev-parse", "--git-path", "objects")).removesuffix("\n")
        return (self.path / told).resolve()

    def resolve(self, revision: str) -> str:
        """The 40 hex digits of a commit.

        Raises:
            GitError: there is no such commit.
        """
        return self.git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()

    def has_commit(self, revision: str) -> bool:
        """Whether the repository holds the commit."""
        try:
            self.resolve(revision)
        except GitError:
            return False
        return True

    def tree_id(self, revision: str) -> str:
        """The tree of a commit."""
        return self.git("rev-parse", "--verify", f"{revision}^{{tree}}").decode().strip()

    def ls_tree(self, revision: str) -> list[TreeEntry]:
        """All files of a commit, recursively, in git's order; submodules and objects the clone lacks have size 0."""
        entries = []
        for row in self.git("ls-tree", "-r", "-z", "-l", "--full-tree", revision).split(b"\0")[:-1]:
            head, _, path = row.partition(b"\t")
            mode, _kind, oid, size = head.decode().split()
            entries.append(
                TreeEntry(path=os.fsdecode(path), mode=mode, oid=oid, size=int(size) if size.isdigit() else 0)
            )
        return entries

    def blobs(self, oids: Iterable[str]) -> Iterator[bytes]:
        """The contents of blobs, in the order asked for, through one `cat-file --batch`."""
        wanted = list(oids)
        if not wanted:
            return
        raw = self.git("cat-file", "--batch", data="".join(f"{oid}\n" for oid in wanted).encode())
        at = 0
        for _ in wanted:
            end = raw.index(b"\n", at)
            header = raw[at:end].split()
            if header[-1] == b"missing":
                raise GitError(f"object {header[0].decode()} is missing")
            size = int(header[2])
            yield raw[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def read(self, revision: str, path: str) -> bytes | None:
        """A file's content at a commit, or None when there is no such file."""
        try:
            return self.git("cat-file", "blob", f"{revision}:{path}")
        except GitError:
            return None
