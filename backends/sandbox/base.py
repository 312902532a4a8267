"""Sandbox protocol: run commands in containers that are isolated from this machine.

A failed command is a result (`ExecResult`); an unreachable engine is an exception (`core.errors.Transient`).
Results come back as files that the caller names, never by parsing a terminal. All foreign code runs behind this
protocol. Images are kept by the sandbox's image store (`backends.sandbox.images`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, Protocol

from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.images import ImageStore
from backends.sandbox.mounts import Mount
from backends.sandbox.volumes import VolumeStore


class ContainerPool(Protocol):
    """Containers of an image, started ahead. Each command runs as root, without network, in a fresh container."""

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        seconds: float | None = None,
        last: bool = False,
    ) -> ExecResult:
        """Run `command` as `Sandbox.run` does. No files are collected from a command that was killed.

        Args:
            command: program and arguments.
            files: absolute path -> content; only root can read them.
            collect: absolute paths of regular files to return.
            env: environment variables.
            seconds: time limit of this command, at most that of the pool, which is the default.
            last: no further command follows at once, so no further container is started.

        Raises:
            Transient, InputError: as `Sandbox.run`.
        """
        ...


class ContainerSession(Protocol):
    """Container that stays open: commands run in sequence, as root, and see the files of earlier commands."""

    def run(self, command: str, *, seconds: float) -> ExecResult:
        """Run a line of bash for at most `seconds`. No files are collected.

        A command that is killed for `time` or `disk` may end the container; the next command then runs in a fresh
        container.

        Raises:
            Transient, InputError: as `Sandbox.run`.
        """
        ...

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a regular file of at most 64 MiB; None where there is none or no container yet.

        Raises:
            Transient: as `Sandbox.run`.
        """
        ...

    def write_files(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files (absolute path -> content, owner root).

        Raises:
            Transient, InputError: as `Sandbox.run`.
        """
        ...


class ContainerProcess(Protocol):
    """Program in a container of its own, with stdin and stdout open. A thread reads, one at a time writes."""

    def write(self, data: bytes) -> None:
        """Write to the program's stdin.

        Raises:
            Transient: the program has ended, which `read_line` has returned or the write finds out.
        """
        ...

    def read_line(self) -> bytes:
        r"""Return the next line of stdout with its `\n`; empty once the program has ended or exceeded its time.

        Raises:
            Transient: the engine cannot be reached.
            CancelledRunError: `Sandbox.stop` was called.
        """
        ...

    def get_errors(self) -> str:
        """Return head and tail of the text that the program wrote to stderr so far."""
        ...


class Sandbox(Protocol):
    """Runs commands in containers. Threads may share it."""

    @property
    def images(self) -> ImageStore:
        """Images that containers are started from."""
        ...

    @property
    def volumes(self) -> VolumeStore:
        """Volumes that containers may share."""
        ...

    def run(
        self,
        image: str,
        command: Sequence[str],
        *,
        limits: ResourceLimits,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        network: bool = False,
        user: str = "root",
    ) -> ExecResult:
        """Run `command` in a fresh container of `image`, which is removed afterwards.

        Args:
            image: name or digest.
            command: program and arguments.
            limits: limits of the container.
            files: absolute path -> content, written before the start (owner root, mode 0644).
            collect: absolute paths of regular files to return.
            env: environment variables.
            network: whether the container has a network.
            user: user that runs the command.

        Raises:
            Transient: the engine cannot be reached or its disk is full.
            InputError: there is no such image.
            CancelledRunError: `stop` was called.
        """
        ...

    def open_pool(self, image: str, *, limits: ResourceLimits) -> AbstractContextManager[ContainerPool]:
        """Open a container pool of `image`: the next container is started while a command runs.

        The image needs bash, coreutils and tar.
        """
        ...

    def open_session(
        self,
        image: str,
        *,
        limits: ResourceLimits,
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "/",
        network: bool = True,
        mounts: Sequence[Mount] = (),
    ) -> AbstractContextManager[ContainerSession]:
        """Open a container session. Its container is created by the first command.

        Args:
            image: name or digest.
            limits: limits of the container; it lives for `limits.seconds`.
            tree: function that opens a tar stream that is unpacked at `/` first.
            files: absolute path -> content, written before the start.
            env: environment variables of each command.
            workdir: working directory of each command; it must exist once `tree` is unpacked.
            network: whether the container has a network.
            mounts: volumes and folders that it shares with others.
        """
        ...

    def open_process(
        self,
        image: str,
        command: Sequence[str],
        *,
        limits: ResourceLimits,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[ContainerProcess]:
        """Start a program as root, without network, in a fresh container that is removed at the end of the block.

        Args:
            image: name or digest.
            command: program and arguments.
            limits: limits of the container, which is killed after `limits.seconds`; `output_bytes` is how much of
                stderr is kept.
            files: absolute path -> content, written before the start (owner root, mode 0644).
            env: environment variables.

        Raises:
            Transient, InputError: as `run`.
        """
        ...

    def stop(self) -> None:
        """End all running commands and start none: every thread's calls raise `core.errors.CancelledRunError`."""
        ...

    def reap(self) -> int:
        """Remove what killed mergemill processes of this machine left behind and return how many containers it was."""
        ...
