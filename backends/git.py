"""Git through pipes, for bulk reading (clone and fetch use GitPython, in `backends.clones`).

`GitRepository` is a read-only view: it changes neither work tree nor index of the repository, and it disables whatever
a repository or a user's configuration could make git execute (filters, textconv, external diffs, hooks).
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from core.errors import InputError, MachineError, Transient

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

_PIPE_BYTES = 1 << 20
"""Size of the pipe between git and its reader: the largest that Linux gives to unprivileged processes."""


class GitError(InputError):
    """A git command failed; the message is git's own last line."""


def build_git_environment() -> dict[str, str]:
    """Return the environment of git processes: no user or system configuration, no prompt, the C locale.

    `GIT_FLUSH=0` makes git write full blocks: flushing each commit to the pipe takes a quarter more time.
    """
    allowed = ("GIT_SSL_CAINFO", "GIT_SSL_NO_VERIFY")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in allowed}
    return inherited | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_FLUSH": "0",
        "LC_ALL": "C",
    }


def run_git(
    *arguments: str, cwd: Path | None = None, data: bytes | None = None, env: Mapping[str, str] | None = None
) -> bytes:
    """Run git with a safe configuration and return its standard output.

    Raises:
        GitError: it exited with a code other than 0.
        Transient: it was killed (Ctrl-C, out of memory).
        MachineError: git is not installed.
    """
    config = [part for item in _SAFE_CONFIG for part in ("-c", item)]
    try:
        completed = subprocess.run(
            ["git", *config, *arguments],
            cwd=cwd,
            input=data,
            capture_output=True,
            check=False,
            env=build_git_environment() | dict(env or {}),
        )
    except FileNotFoundError as error:
        if shutil.which("git"):
            raise GitError(f"git {arguments[0]}: there is no folder {cwd}") from error
        raise MachineError("git is not installed", advice="apt-get install -y git") from error
    if completed.returncode < 0:
        raise Transient(f"git {arguments[0]} was ended by signal {-completed.returncode}")
    if completed.returncode != 0:
        lines = completed.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {completed.returncode}"]
        raise GitError(f"git {arguments[0]}: {lines[-1]}")
    return completed.stdout


def _start_git(command: Sequence[str], cwd: Path, stdin: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start git in a folder, with a large pipe to its reader."""
    config = [part for item in _SAFE_CONFIG for part in ("-c", item)]
    process = subprocess.Popen(
        ["git", *config, *command],
        cwd=cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=build_git_environment(),
    )
    with suppress(OSError, AttributeError):  # with a smaller pipe git only waits more often
        fcntl.fcntl(_get_stdout(process), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return process


def _get_stdout(process: subprocess.Popen[bytes]) -> io.BufferedReader:
    assert isinstance(process.stdout, io.BufferedReader)  # noqa: S101 - stdout=PIPE gives one
    return process.stdout


def list_patch_paths(patch: bytes) -> list[str]:
    """Return the paths of a patch, new names for renames, with surrogate escapes where they are not UTF-8.

    Raises:
        GitError: git cannot parse the patch.
    """
    return _list_paths(patch)


def list_patch_renames(patch: bytes) -> dict[str, str]:
    """Return the old names of a patch's renamed or copied files by their new names, spelled as in `list_patch_paths`.

    Raises:
        GitError: git cannot parse the patch.
    """
    renames = {}
    for section in re.split(rb"(?m)^(?=diff --git )", patch):
        if re.search(rb"(?m)^(?:rename|copy) from ", section):  # a line of a hunk begins with another character
            (new,), (old,) = _list_paths(section), _list_paths(section, "--reverse")
            renames[new] = old
    return renames


def list_patch_additions(patch: bytes) -> frozenset[str]:
    """Return the paths of the files that a patch adds, spelled as in `list_patch_paths`.

    Raises:
        GitError: git cannot parse the patch.
    """
    sections = re.split(rb"(?m)^(?=diff --git )", patch)
    # A line of a hunk begins with another character.
    added = b"".join(section for section in sections if re.search(rb"(?m)^new file mode ", section))
    return frozenset(_list_paths(added))


def _list_paths(patch: bytes, *options: str) -> list[str]:
    # In `/`, because within a repository git omits paths that are not below its working directory.
    rows = run_git("apply", "--numstat", "-z", *options, cwd=Path("/"), data=patch).split(b"\0")[:-1] if patch else []
    return [os.fsdecode(row.split(b"\t", 2)[2]) for row in rows]


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """A file of a tree: `mode` such as `100644` (`160000`: a submodule, `120000`: a link), object id, size in bytes."""

    path: str
    mode: str
    oid: str
    size: int


class GitRepository:
    """A git repository, bare or not, read through pipes. Paths that are not UTF-8 have surrogate escapes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run_git(self, *arguments: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """Run git in this repository and return its standard output."""
        return run_git(*arguments, cwd=self.path, data=data, env=env)

    def stream(
        self, *arguments: str, data: Iterable[bytes] | None = None, through: Sequence[str] = (), nice: int = 0
    ) -> Iterator[bytes]:
        """Start git and yield its standard output in blocks. `data` is spooled to a file that is its input.

        Git is started by the call and runs ahead of its reader by up to the size of the pipe.

        Args:
            arguments: the command.
            data: its standard input.
            through: a second git command; the blocks are its output, and its input is the first command's output.
            nice: niceness that is added to git's processes, 0 to 19.
        """
        blocks = self._stream_blocks([arguments, through] if through else [arguments], data, nice)
        next(blocks)  # runs until git is started
        return blocks

    def _stream_blocks(
        self, commands: Sequence[Sequence[str]], data: Iterable[bytes] | None, nice: int
    ) -> Iterator[bytes]:
        """Yield an empty block once the commands run as a pipeline, then the output of the last."""
        processes: list[subprocess.Popen[bytes]] = []
        with tempfile.TemporaryFile() as spooled, tempfile.TemporaryFile() as stderr:
            for block in data or ():
                spooled.write(block)
            spooled.seek(0)
            with ExitStack() as running:
                stdin: IO[bytes] = spooled
                for command in commands:
                    processes.append(running.enter_context(_start_git(command, self.path, stdin, stderr)))
                    stdin.close()  # the process has its own descriptor now
                    stdin = _get_stdout(processes[-1])
                    if nice:
                        os.setpriority(os.PRIO_PROCESS, processes[-1].pid, os.getpriority(os.PRIO_PROCESS, 0) + nice)
                try:
                    yield b""
                    while block := _get_stdout(processes[-1]).read1(_PIPE_BYTES):
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
    def objects_folder(self) -> Path:
        """Folder of its objects, which other repositories may use as alternates."""
        own = self.path / ".git"
        # Without a process of git where it is plain to see: not in a linked work tree, or below a repository's root.
        folder = own if own.exists() else self.path
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and not (folder / "commondir").exists():
            return (folder / "objects").resolve()
        named = os.fsdecode(self.run_git("rev-parse", "--git-path", "objects")).removesuffix("\n")
        return (self.path / named).resolve()

    def resolve(self, revision: str) -> str:
        """Return the 40 hex digits of a commit.

        Raises:
            GitError: there is no such commit.
        """
        return self.run_git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()

    def has_commit(self, revision: str) -> bool:
        """Return whether the repository contains the commit."""
        try:
            self.resolve(revision)
        except GitError:
            return False
        return True

    def resolve_tree(self, revision: str) -> str:
        """Return the tree id of a commit."""
        return self.run_git("rev-parse", "--verify", f"{revision}^{{tree}}").decode().strip()

    def ls_tree(self, revision: str) -> list[TreeEntry]:
        """Return all files of a commit, recursively, in git's order; submodules and missing objects have size 0."""
        entries = []
        for row in self.run_git("ls-tree", "-r", "-z", "-l", "--full-tree", revision).split(b"\0")[:-1]:
            head, _, path = row.partition(b"\t")
            mode, _kind, oid, size = head.decode().split()
            entries.append(
                TreeEntry(path=os.fsdecode(path), mode=mode, oid=oid, size=int(size) if size.isdigit() else 0)
            )
        return entries

    def read_blobs(self, oids: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of blobs, in the given order, through a single `cat-file --batch`.

        Raises:
            GitError: an object is missing.
        """
        requested = list(oids)
        if not requested:
            return
        raw = self.run_git("cat-file", "--batch", data="".join(f"{oid}\n" for oid in requested).encode())
        at = 0
        for _ in requested:
            end = raw.index(b"\n", at)
            header = raw[at:end].split()
            if header[-1] == b"missing":
                raise GitError(f"object {header[0].decode()} is missing")
            size = int(header[2])
            yield raw[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def read_file(self, revision: str, path: str) -> bytes | None:
        """Return a file's content at a commit, or None when there is no such file."""
        try:
            return self.run_git("cat-file", "blob", f"{revision}:{path}")
        except GitError:
            return None
