"""The tree of an episode: a container session with the base tree in it, and the data that is read from it.

The repository is copied aside when the session starts: whatever the agent does to its own, differences are of the copy.
Paths of tools are resolved in the container and must lie in the repository, links included.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from backends.sandbox.base import ContainerSession, Sandbox
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.mounts import Mount
from core.errors import MergemillError
from simulators.swe.exchange import TARGET, ProgramAnswer, ProgramCall, ProgramExchange
from simulators.swe.programs import MASK_COMMAND, make_program_mounts

WORKDIR = "/testbed"
PRIVATE = "/run/mergemill"
BASE_GIT = f"{PRIVATE}/base.git"
PATCH_FILE = f"{PRIVATE}/submission.patch"
STAGED_FILE = f"{PRIVATE}/staged"
STATE = f"{PRIVATE}/workspace-state"
"""Beginning of the names of the files with the state, which an observer of the same container does not use."""
START_SECONDS = 300.0
READ_SECONDS = 120.0
GIT_ENV: Mapping[str, str] = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_CONFIG_KEY_1": "core.pager",
    "GIT_CONFIG_VALUE_1": "cat",
}
"""Files belong to the user of the tests, and commands run as root."""
_START = (
    f"mkdir -p {PRIVATE} && git checkout -q -f main && {{ [ -d {BASE_GIT} ] || cp -a .git {BASE_GIT}; }} && "
    f"cp .git/index {STATE}.index && {{ {MASK_COMMAND}; }}"
)
# Whatever the agent does to its own repository and configuration, differences are those of the copy.
_GIT = (
    f"export GIT_DIR={BASE_GIT} GIT_WORK_TREE={WORKDIR} GIT_CONFIG_NOSYSTEM=1 HOME={PRIVATE} "
    f"GIT_INDEX_FILE={STATE}.index; cd {WORKDIR} && git -c core.fsmonitor=false "
    "-c advice.addEmbeddedRepo=false add -A -- . 2>/dev/null && "
)
# Attributes of files in the agent's tree must not start a program, nor change how differences look.
_DIFF = "git diff --cached --binary --full-index --no-ext-diff --no-textconv HEAD"
_INSIDE = f'path=$(realpath -m -- "$1"); case "$path/" in {WORKDIR}/*) ;; *) exit 9;; esac; '
_OUTSIDE = 9
"""Exit code of a command whose path leads out of the repository."""


@dataclass(frozen=True, kw_only=True)
class TreeState:
    """Files of a workspace: the id of their git tree, their paths, those that differ from the base tree, the patch."""

    tree: str
    files: frozenset[str]
    changed: frozenset[str]
    patch: str


class OutsideError(Exception):
    """A path leads out of the repository."""


class LostWorkspaceError(Exception):
    """The container is gone, or holds no repository any more."""


@dataclass(frozen=True, kw_only=True)
class WorkspaceHost:
    """Options that all workspaces are opened with.

    Attributes:
        sandbox: sandbox that runs the commands.
        image: a small system with bash, coreutils, grep, sed and git.
        limits: limits of a session; `seconds` is its life.
        of_host: whether the image is the programs of this machine (`backends.sandbox.bubblewrap`).
    """

    sandbox: Sandbox
    image: str
    limits: ResourceLimits
    of_host: bool = False


@dataclass(kw_only=True)
class Workspace:
    """An open session, and itself one (`backends.sandbox.base.ContainerSession`), in which programs are simulated.

    `n_simulated`: calls of simulated programs so far.
    """

    shell: ContainerSession
    n_simulated: int = 0
    past: list[tuple[str, ProgramAnswer]] = field(default_factory=list)
    """Commands that were simulated, with their answers."""
    failure: MergemillError | None = None
    """Why a call had no answer, where that is not the agent's fault."""

    def run(self, command: str, *, seconds: float) -> ExecResult:
        """Run a line of Bash in the repository.

        Raises:
            MergemillError: the simulator could not be reached, or the sandbox failed.
        """
        result = self.shell.run(command, seconds=seconds)
        if self.failure is not None:
            raise self.failure
        return result

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file of the container; see `ContainerSession`."""
        return self.shell.read_file(path)

    def write_files(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files of the container; see `ContainerSession`."""
        self.shell.write_files(files, mode=mode)

    def run_inside(self, script: str, path: str, *words: str) -> ExecResult:
        """Run a script whose `$path` is a path within the repository, links resolved; further words are `$2` and on.

        Raises:
            OutsideError: the path leads out.
        """
        line = shlex.join(["bash", "-c", _INSIDE + script, "bash", path, *words])
        result = self.shell.run(line, seconds=READ_SECONDS)
        # The check of the path prints nothing: with output, the code is that of the script.
        if result.exit_code == _OUTSIDE and not result.output:
            raise OutsideError(path)
        return result

    def resolve(self, path: str) -> str:
        """Return the absolute path of a file or folder of the repository, links resolved; it need not exist.

        Raises:
            OutsideError: it leads out.
            LostWorkspaceError: the container is gone.
        """
        result = self.run_inside('printf "%s" "$path"', path)
        if result.exit_code or not result.output:
            raise LostWorkspaceError(result.output.strip()[-200:] or "the container is gone")
        return result.output

    def read_text(self, path: str) -> bytes | None:
        """Return the content of a regular file of the repository, None where there is none.

        Raises:
            OutsideError: the path leads out.
        """
        return self.shell.read_file(self.resolve(path))

    def write_file(self, path: str, content: bytes) -> None:
        """Write a file of the repository; the mode of a file that exists is kept.

        Raises:
            OutsideError: the path leads out.
            LostWorkspaceError: it cannot be written.
        """
        self.resolve(path)
        self.shell.write_files({STAGED_FILE: content})
        # Moving the new file into its place would replace the mode of the old file.
        result = self.run_inside(f'mkdir -p -- "$(dirname -- "$path")" && cat {STAGED_FILE} > "$path"', path)
        if result.exit_code:
            raise LostWorkspaceError(result.output.strip()[-200:] or "the container is gone")

    def read_state(self) -> TreeState:
        """Return the files as they are.

        Raises:
            LostWorkspaceError: there is no repository any more.
        """
        changed = "git diff --cached --name-only --no-renames --diff-filter=d -z HEAD"
        files = {name: f"{STATE}.{name}" for name in ("tree", "files", "changed", "patch")}
        self._run_git(
            f"git write-tree > {files['tree']} && git ls-files -z > {files['files']} && "
            f"{changed} > {files['changed']} && {_DIFF} > {files['patch']}"
        )
        contents = [content for path in files.values() if (content := self.shell.read_file(path)) is not None]
        if len(contents) < len(files):
            raise LostWorkspaceError("the state of the tree cannot be read")
        tree, listed, names, patch = contents
        return TreeState(
            tree=tree.decode().strip(),
            files=_split(listed),
            changed=_split(names),
            patch=patch.decode(errors="replace"),
        )

    def diff(self) -> bytes:
        """Return the patch from the base tree to the files as they are.

        Raises:
            LostWorkspaceError: there is no repository any more.
        """
        self._run_git(f"{_DIFF} > {PATCH_FILE}")
        patch = self.shell.read_file(PATCH_FILE)
        if patch is None:
            raise LostWorkspaceError("the difference is too large")
        return patch

    def _run_git(self, command: str) -> str:
        result = self.shell.run(_GIT + command, seconds=READ_SECONDS)
        if result.exit_code or result.killed_by:
            raise LostWorkspaceError(" ".join(result.output.split())[-200:] or "the container is gone")
        return result.output


Answerer = Callable[[Workspace, ProgramCall], ProgramAnswer]
"""Answers a call of a simulated program in a workspace."""
TreeOpener = Callable[[], AbstractContextManager[IO[bytes]]]
"""Opens a tar stream, to be unpacked at `/`, with a repository at `WORKDIR` whose branch `main` is the base tree."""


class SimulatedPrograms:
    """Simulated programs of a container; a context manager, whose `mounts` and GIT_ENV the container is opened with.

    Args:
        answer: answer that answers their calls.
        of_host: flag as in `WorkspaceHost`.
    """

    mounts: tuple[Mount, ...]

    def __init__(self, answer: Answerer, *, of_host: bool) -> None:
        self._answer = answer
        self._of_host = of_host
        self._workspace: Workspace | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mergemill-programs-")))
            folder.chmod(0o755)
            exchange = stack.enter_context(ProgramExchange(folder / "exchange", self._answer_call))
            programs = make_program_mounts(folder / "bin", of_host=self._of_host)
            self.mounts = (Mount(source=str(exchange.folder), target=TARGET), *programs)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def attach(self, shell: ContainerSession) -> Workspace:
        """Return the workspace of an open session, prepared for commands.

        Raises:
            LostWorkspaceError: it holds no repository.
            Transient, InputError: as `ContainerSession.run`.
        """
        result = shell.run(_START, seconds=START_SECONDS)
        if result.exit_code:
            raise LostWorkspaceError(" ".join(result.output.split())[-200:] or "the container does not start")
        self._workspace = Workspace(shell=shell)
        return self._workspace

    def _answer_call(self, call: ProgramCall) -> ProgramAnswer:
        if self._workspace is None:
            return ProgramAnswer(stderr=f"{call.argv[0]}: not available\n", exit_code=1)
        self._workspace.n_simulated += 1
        try:
            return self._answer(self._workspace, call)
        except MergemillError as error:
            self._workspace.failure = error
            return ProgramAnswer(stderr=f"{call.argv[0]}: not available\n", exit_code=1)


@contextlib.contextmanager
def open_workspace(host: WorkspaceHost, tree: TreeOpener, answer: Answerer) -> Iterator[Workspace]:
    """Open a workspace with a repository in it.

    Raises:
        LostWorkspaceError: the tree holds no repository.
        Transient, InputError: as `Sandbox.open_session`.
    """
    with (
        SimulatedPrograms(answer, of_host=host.of_host) as programs,
        host.sandbox.open_session(
            host.image,
            limits=host.limits,
            tree=tree,
            env=GIT_ENV,
            workdir=WORKDIR,
            network=False,
            mounts=programs.mounts,
        ) as shell,
    ):
        yield programs.attach(shell)


def _split(listed: bytes) -> frozenset[str]:
    """Return the paths of a list that git wrote with `-z`."""
    return frozenset(os.fsdecode(path) for path in listed.split(b"\0") if path)
