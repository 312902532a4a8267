"""Runs in fresh containers of one image, one after the other: while one runs, the next is started and waits.

Starting a container takes longer than most of what is done in one. A waiting one has read nothing but its image, no
foreign code has run in it, and it is used once. It reads command and files from its stdin, so it also ends when this
process does. Its stdout is held by root's shell alone and carries the files back; what the command prints, on either
stream, goes to stderr. The engine's own requests for putting and getting files take 0.1 s each.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from backends.sandbox import archive
from backends.sandbox.base import Ran
from backends.sandbox.box import HOSTS, Box
from backends.sandbox.output import Results

BOOT = """
printf %s "$0" > /etc/hosts
read -r words paths bytes || exit 0
mapfile -d '' -n $((words + paths)) -t told
head -c "$bytes" | tar -x -C / || exit 125
"${told[@]:0:words}" < /dev/null >&2
code=$?
found=()
for path in "${told[@]:words}"; do [ -f "$path" ] && [ ! -L "$path" ] && found+=("${path#/}"); done
[ ${#found[@]} -eq 0 ] || tar -c -C / -- "${found[@]}"
exit $code
"""
COMMAND = ("/bin/bash", "-c", BOOT, HOSTS)
"""What a waiting container runs, in bash. It is told the numbers of words, paths and bytes, and then those."""


class Waiting:
    """A started container that waits for what it is to do.

    Raises:
        HTTPError: the engine does not start it.
    """

    def __init__(self, box: Box) -> None:
        self.box = box
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as opened:
            self._stream: Any = opened.enter_context(box.attached(stdin=True))
            box.client.start(box.id)
            self._open = opened.pop_all()

    def run(
        self, command: Sequence[str], files: Mapping[str, bytes], collect: Sequence[str], env: Mapping[str, str]
    ) -> Ran:
        """Run the command in it; once."""
        words = ["env", *(f"{name}={value}" for name, value in env.items()), *command]
        packed, results = archive.pack(files, mode=0o600), Results(archive.MAX_FILE_BYTES)
        told = f"{len(words)} {len(collect)} {len(packed)}\n" + "".join(f"{word}\0" for word in [*words, *collect])
        # Plain sockets come wrapped for reading, encrypted ones do not.
        getattr(self._stream, "_sock", self._stream).sendall(told.encode() + packed)
        ran = self.box.follow(self._stream, results)
        found = archive.files_of(results.content())
        return Ran(
            exit_code=ran.exit_code, output=ran.output, seconds=ran.seconds, killed_by=ran.killed_by,
            files={path: found[path] for path in collect if path in found},
        )  # fmt: skip

    def close(self) -> None:
        """Let go of its streams; one that still waits ends by itself."""
        self._open.close()


class Boxes:
    """See `backends.sandbox.base.Series`. To be used by one thread at a time.

    Args:
        make: makes a waiting container.
        drop: is given, as a function of its id, each that is not needed any more.
        threads: where they are made.
        errors: turns the engine's exceptions into this program's.
    """

    def __init__(
        self,
        make: Callable[[], Waiting],
        drop: Callable[[Callable[[], str]], None],
        threads: ThreadPoolExecutor,
        errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._make = make
        self._drop = drop
        self._threads = threads
        self._errors = errors
        self._next: Future[Waiting] | None = threads.submit(make)

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        last: bool = False,
    ) -> Ran:
        """Run `command` in the container that waits, and have the next one made unless this is the last."""
        mine = self._next or self._threads.submit(self._make)
        self._next = None
        with self._errors():
            try:
                waiting = mine.result()
                self._next = None if last else self._threads.submit(self._make)
                return waiting.run(command, files or {}, collect, env or {})
            finally:
                self._drop(functools.partial(_closed, mine))

    def close(self) -> None:
        """Give up the one that waits."""
        if self._next is not None:
            self._drop(functools.partial(_closed, self._next))
            self._next = None


def _closed(made: Future[Waiting]) -> str:
    """The id of a container once it is made, its streams let go."""
    waiting = made.result()
    waiting.close()
    return waiting.box.id
