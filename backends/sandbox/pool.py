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
from backends.sandbox.container import HOSTS_FILE, Container
from backends.sandbox.execution import ExecResult
from backends.sandbox.output import BoundedBuffer

BOOT_SCRIPT = """
printf %s "$0" > /etc/hosts
read -r words paths bytes || exit 0
mapfile -d '' -n $((words + paths)) -t request
head -c "$bytes" | tar -x -C / || exit 125
"${request[@]:0:words}" < /dev/null >&2
code=$?
found=()
for path in "${request[@]:words}"; do [ -f "$path" ] && [ ! -L "$path" ] && found+=("${path#/}"); done
[ ${#found[@]} -eq 0 ] || tar -c -C / -- "${found[@]}"
exit $code
"""
WARM_COMMAND = ("/bin/bash", "-c", BOOT_SCRIPT, HOSTS_FILE)
"""Command of a warm container. Its input is the numbers of words, paths and bytes, followed by those."""


class StartedContainer(Protocol):
    """A started container that waits for its command."""

    @property
    def id(self) -> str:
        """Id by which it is removed."""
        ...

    def run(
        self, command: Sequence[str], files: Mapping[str, bytes], collect: Sequence[str], env: Mapping[str, str]
    ) -> ExecResult:
        """Run the command; a started container runs a command."""
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
        self, command: Sequence[str], files: Mapping[str, bytes], collect: Sequence[str], env: Mapping[str, str]
    ) -> ExecResult:
        """Run the command; a warm container runs a command."""
        words = ["env", *(f"{name}={value}" for name, value in env.items()), *command]
        tar, results = archive.build_tar(files, mode=0o600), BoundedBuffer(archive.MAX_FILE_BYTES)
        request = f"{len(words)} {len(collect)} {len(tar)}\n" + "".join(f"{word}\0" for word in [*words, *collect])
        # The SDK wraps plain sockets for reading, encrypted ones not.
        getattr(self._stream, "_sock", self._stream).sendall(request.encode() + tar)
        result = self.container.follow(self._stream, results)
        files = archive.extract_files(results.get_content())
        return replace(result, files={path: files[path] for path in collect if path in files})

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
        last: bool = False,
    ) -> ExecResult:
        """Run `command` in the warm container, and start the next container unless this is the last command."""
        future = self._next or self._threads.submit(self._make)
        self._next = None
        with self._translate_errors():
            try:
                container = future.result()
                self._next = None if last else self._threads.submit(self._make)
                return container.run(command, files or {}, collect, env or {})
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
