"""Container pool: while a command runs in a single container, the next container is started.

Starting a container takes longer than most commands. A warm container has read nothing but its image, no foreign code
has run in it, and it is used once. It reads command and files from stdin, so it also ends when this process does. Its
stdout is open in root's shell alone and returns the files; the command's stdout and stderr both go to stderr. The
engine's own requests for putting and getting files take 0.1 s each.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from backends.sandbox import archive
from backends.sandbox.container import HOSTS_FILE, KILLED_EXIT_CODE, Container
from backends.sandbox.execution import ContainerLossError, ExecResult
from backends.sandbox.output import BoundedBuffer

END_MARK = b"end-of-results"
BOOT_SCRIPT = """
printf %s "$0" > /etc/hosts
read -r words paths bytes || exit 0
mapfile -d '' -n $((words + paths)) -t request
head -c "$bytes" | tar -x -C / || exit 125
"${request[@]:0:words}" < /dev/null >&2
code=$?
printf '%d\\n' "$code"
found=()
for path in "${request[@]:words}"; do [ -f "$path" ] && [ ! -L "$path" ] && found+=("${path#/}"); done
[ ${#found[@]} -eq 0 ] || tar -c -C / -- "${found[@]}"
printf END_MARK
exit $code
""".replace("END_MARK", END_MARK.decode())
WARM_COMMAND = ("/bin/bash", "-c", BOOT_SCRIPT, HOSTS_FILE)
"""Command of a warm container. Its input is the numbers of words, paths and bytes, followed by those.

Its stdout is the exit code of its command on a line, a tar of the files, and END_MARK."""


class StartedContainer(Protocol):
    """A started container that waits for its command."""

    @property
    def id(self) -> str:
        """Id by which it is removed."""
        ...

    def run(
        self,
        command: Sequence[str],
        files: Mapping[str, bytes],
        collect: Sequence[str],
        env: Mapping[str, str],
        seconds: float | None = None,
    ) -> ExecResult:
        """Run the command; a started container runs a command. `seconds`: limit below its own; None for its own."""
        ...

    def close(self) -> None:
        """Close the resources that it has open in this process."""
        ...


class WarmContainer:
    """A started container of a Docker engine that waits for its command.

    Raises:
        HTTPError: the engine cannot start it.
    """

    def __init__(self, container: Container) -> None:
        self.container = container
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as opened:
            self._stream: Any = opened.enter_context(container.attach(stdin=True))
            container.client.start(container.id)
            self._open = opened.pop_all()

    @property
    def id(self) -> str:
        """Id of the container."""
        return self.container.id

    def run(
        self,
        command: Sequence[str],
        files: Mapping[str, bytes],
        collect: Sequence[str],
        env: Mapping[str, str],
        seconds: float | None = None,
    ) -> ExecResult:
        """Run the command; a warm container runs a command. `seconds`: limit below its own; None for its own."""
        words = ["env", *(f"{name}={value}" for name, value in env.items()), *command]
        tar, results = archive.build_tar(files, mode=0o600), BoundedBuffer(archive.MAX_FILE_BYTES)
        if len(tar) > self.container.limits.disk_bytes:
            # The engine would end the program that unpacks them, which looks like a loss.
            return ExecResult(exit_code=KILLED_EXIT_CODE, output="", files={}, seconds=0.0, killed_by="disk")
        request = f"{len(words)} {len(collect)} {len(tar)}\n" + "".join(f"{word}\0" for word in [*words, *collect])
        try:
            # The SDK wraps plain sockets for reading, encrypted ones not.
            getattr(self._stream, "_sock", self._stream).sendall(request.encode() + tar)
        except ConnectionError as error:
            raise ContainerLossError(f"container {self.id[:12]} does not take its command: {error}") from error
        result = self.container.follow(self._stream, results, seconds)
        line, _, packed = results.get_content().partition(b"\n")
        if not packed.endswith(END_MARK):
            is_explained = result.killed_by or results.has_overflowed
            return result if is_explained else self._explain_end(result, has_ended=bool(line))
        files = archive.extract_files(packed[: -len(END_MARK)])
        return replace(result, exit_code=int(line), files={path: files[path] for path in collect if path in files})

    def _explain_end(self, result: ExecResult, *, has_ended: bool) -> ExecResult:
        """Return the result of a shell that gave up after its command, which may leave no process to start.

        Args:
            result: result of a container that did not return everything, though no known limit ended it.
            has_ended: whether its command has ended.

        Raises:
            ContainerLossError: nothing inside of the container can have ended it.
        """
        if result.exit_code == KILLED_EXIT_CODE:
            return replace(result, killed_by=self.container.explain_kill())
        if not has_ended:
            raise ContainerLossError(f"container {self.id[:12]} ended without a result of its command")
        return result

    def close(self) -> None:
        """Close its streams; a container that has no command yet then ends by itself."""
        self._open.close()


class WarmContainerPool:
    """See `backends.sandbox.base.ContainerPool`. To be used by a single thread at a time.

    Args:
        make: function that creates a warm container.
        remove: function that is called with a function that returns the id of a container that is not needed any more.
        threads: create the warm containers.
        translate_errors: function that turns the engine's exceptions into this project's.
    """

    def __init__(
        self,
        make: Callable[[], StartedContainer],
        remove: Callable[[Callable[[], str]], None],
        threads: ThreadPoolExecutor,
        translate_errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._make = make
        self._remove = remove
        self._threads = threads
        self._translate_errors = translate_errors
        self._next: Future[StartedContainer] | None = threads.submit(make)

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
        """Run `command` in the warm container, and start the next container unless this is the last command."""
        future = self._next or self._threads.submit(self._make)
        self._next = None
        with self._translate_errors():
            try:
                container = future.result()
                self._next = None if last else self._threads.submit(self._make)
                return container.run(command, files or {}, collect, env or {}, seconds)
            finally:
                self._remove(functools.partial(_close_and_get_id, future))

    def close(self) -> None:
        """Remove the warm container."""
        if self._next is not None:
            self._remove(functools.partial(_close_and_get_id, self._next))
            self._next = None


def _close_and_get_id(future: Future[StartedContainer]) -> str:
    """Close a container's streams, once it is created, and return its id."""
    warm = future.result()
    warm.close()
    return warm.id
