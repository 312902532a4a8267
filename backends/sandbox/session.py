"""Container session: a container that stays open, so that each command sees the files of earlier commands.

A command is an exec of the engine, limited by coreutils' `timeout` in the container. The engine itself cannot end an
exec, so the container is killed when a command outlives that; the next command runs in a fresh container.
"""

from __future__ import annotations

import contextlib
import functools
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any

import requests
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from backends.sandbox import archive
from backends.sandbox.container import KILLED_EXIT_CODE, POLL_SECONDS, Container
from backends.sandbox.execution import ExecResult
from backends.sandbox.host_disk import DiskObserver
from backends.sandbox.output import CappedOutput, FrameDecoder, ReadPacer
from backends.sandbox.watch import UsageWatch
from core.errors import CancelledRunError

KEEPALIVE_SCRIPT = "sleep {seconds:.0f} & wait"
"""Main process of the container; bash, because it reaps orphaned processes."""
CANNOT_EXEC_EXIT_CODE = 126
"""Exit code of an exec whose process could not be started: its container is ending, or the command is missing."""
ENDING_SECONDS = 2.0
"""Time in which the engine learns of the end of a container in which nothing can be started any more."""
LAST_OUTPUT_SECONDS = 0.5
"""Time without output after the end of a command, after which none is expected any more."""
TIMEOUT_EXIT_CODE = 124
"""Exit code of `timeout` for a command that exceeded its time."""
KILL_AFTER_SECONDS = 5.0
"""Seconds between SIGTERM and SIGKILL of a command that exceeded its time."""
EXEC_GRACE = 10.0
"""Seconds after which the container is killed when `timeout` did not end the command."""


def build_keepalive_command(seconds: float) -> tuple[str, ...]:
    """Return the command of a container that lives for so many seconds."""
    return ("/bin/bash", "-c", KEEPALIVE_SCRIPT.format(seconds=seconds))


class DockerContainerSession:
    """See `backends.sandbox.base.ContainerSession`. To be used by a single thread at a time.

    Args:
        make: function that creates a container with the command of `build_keepalive_command`, not yet started.
        tree: function that opens a tar stream that is unpacked at `/` first.
        files: absolute path -> content, written before the start.
        remove: function that is called with a function that returns the id of a container that is not needed any more.
        translate_errors: function that turns the engine's exceptions into this project's.
        env: environment variables of each command.
        workdir: working directory of each command.
    """

    def __init__(
        self,
        make: Callable[[], Container],
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None,
        files: Mapping[str, bytes],
        remove: Callable[[Callable[[], str]], None],
        translate_errors: Callable[[], AbstractContextManager[None]],
        *,
        env: Mapping[str, str],
        workdir: str,
    ) -> None:
        self._make = make
        self._tree = tree
        self._files = files
        self._remove = remove
        self._translate_errors = translate_errors
        self._env = dict(env)
        self._workdir = workdir
        self._container: Container | None = None
        self._starting = threading.Lock()

    def run(self, command: str, *, seconds: float) -> ExecResult:
        """Run a line of bash."""
        with self._translate_errors():
            container = self._start_container()
            words = ["timeout", "-k", f"{KILL_AFTER_SECONDS:.0f}", f"{seconds:.3f}", "/bin/bash", "-c", command]
            try:
                created = container.client.exec_create(
                    container.id, words, environment=self._env, workdir=self._workdir
                )
                result = self._follow(container, created["Id"], seconds)
            except requests.HTTPError as error:
                if error.response is None or container.is_running():
                    raise
                return self._close_ended(container)
            return result or self._close_ended(container)

    def _close_ended(self, container: Container) -> ExecResult:
        """Remove a container that ended between two commands: it exceeded its time, or a command ended it."""
        if self._container is container:
            container.require_own_end()
            self.close()
        return ExecResult(exit_code=KILLED_EXIT_CODE, output="", files={}, seconds=0.0, killed_by="time")

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None."""
        with self._translate_errors():
            return self._container.read_file(path) if self._container is not None else None

    def write_files(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files."""
        with self._translate_errors():
            self._start_container().put_archive(archive.build_tar(files, mode))

    def close(self) -> None:
        """Remove the container."""
        if self._container is not None:
            self._remove(functools.partial(_get_id, self._container))
            self._container = None

    def _start_container(self) -> Container:
        """Return the container once it runs: to a thread that observes, one that was not started yet has ended."""
        with self._starting:
            container = self._container  # the other thread may close it at any moment
            if container is None:
                container = self._make()
                try:
                    if self._files:
                        container.put_archive(archive.build_tar(self._files))
                    if self._tree is not None:
                        with self._tree() as tree:
                            container.put_archive(archive.read_chunks(tree))
                    container.client.start(container.id)
                except BaseException:
                    self._remove(functools.partial(_get_id, container))
                    raise
                self._container = container
            return container

    def _follow(self, container: Container, exec_id: str, seconds: float) -> ExecResult | None:
        """Return the result of a command; None where it could not begin, because its container was ending."""
        output, started = CappedOutput(container.limits.output_bytes), time.monotonic()
        deadline, disk = started + seconds + KILL_AFTER_SECONDS + EXEC_GRACE, DiskObserver(container.disk)
        with _open_exec_stream(container, exec_id) as stream:
            running = _RunningCommand(container, exec_id, stream, disk)
            killed_by = _read_until_done(running, FrameDecoder(output), deadline)
        elapsed = time.monotonic() - started
        if container.stopping.is_set():
            raise CancelledRunError("stopped")
        disk.require()
        ended = {"ExitCode": KILLED_EXIT_CODE} if killed_by else container.client.exec_inspect(exec_id)
        code = int(ended["ExitCode"] or 0)
        if code == CANNOT_EXEC_EXIT_CODE and not ended["Pid"] and _is_ending(container):
            return None
        if killed_by:
            self.close()
        elif code in (TIMEOUT_EXIT_CODE, KILLED_EXIT_CODE) and elapsed >= seconds:
            killed_by = "time"
        elif code == KILLED_EXIT_CODE and container.has_lacked_memory():
            killed_by = "memory"
        elif code == KILLED_EXIT_CODE:
            container.require_own_end()
        return ExecResult(exit_code=code, output=output.get_text(), files={}, seconds=elapsed, killed_by=killed_by)


@contextlib.contextmanager
def _open_exec_stream(container: Container, exec_id: str) -> Iterator[Any]:
    stream = container.client.exec_start(exec_id, socket=True)
    try:
        yield stream
    finally:
        stream._response.close()
        stream.close()


@dataclass(frozen=True)
class _RunningCommand:
    """A command in a container, with the stream of its output."""

    container: Container
    exec_id: str
    stream: Any
    disk: DiskObserver


def _read_until_done(command: _RunningCommand, frames: FrameDecoder, deadline: float) -> str | None:
    """Read output until the command ends; return why the container was killed, `time` or `disk`, else None.

    Background processes may keep the output open, so the engine is queried whether a silent command still runs.
    """
    pacer, container, stream = ReadPacer(), command.container, command.stream
    with contextlib.closing(UsageWatch(container)) as watch, contextlib.closing(select.epoll()) as poll:
        poll.register(stream.fileno(), select.EPOLLIN)
        has_ended = False
        while True:
            if poll.poll(LAST_OUTPUT_SECONDS if has_ended else POLL_SECONDS / 4):
                if not (data := _read_chunk(stream)):
                    return None
                frames.feed(data)
                pacer.wait(len(data))
            elif has_ended:
                return None
            else:
                # A busy engine may pass on the output after it knows of the end.
                has_ended = not container.client.exec_inspect(command.exec_id)["Running"]
            command.disk.look()
            now = time.monotonic()
            if now >= watch.next_check and watch.check():
                _kill(container)
                return "disk"
            if now >= deadline or container.stopping.is_set():
                _kill(container)
                return "time"


def _is_ending(container: Container) -> bool:
    """Return whether the container has ended or does so within ENDING_SECONDS: its processes end before it does."""
    return Retrying(
        retry=retry_if_result(lambda is_ending: not is_ending),
        stop=stop_after_delay(ENDING_SECONDS),
        wait=wait_fixed(POLL_SECONDS / 4),
        retry_error_callback=lambda _: False,
    )(lambda: not container.is_running())


def _kill(container: Container) -> None:
    """Kill the container from another thread: the request may return only once all output is read."""
    container.wait_threads.submit(container.kill)


def _read_chunk(stream: Any) -> bytes:
    try:
        return bytes(stream.read(1 << 18) or b"")
    except ConnectionError:
        return b""


def _get_id(container: Container) -> str:
    return container.id
