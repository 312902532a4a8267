"""A container that stays while somebody looks around in it: each command sees what those before left.

A command is an exec of the engine's, ended by coreutils' `timeout` in the container. The engine itself cannot end an
exec, so whatever outlives that takes the container with it; the next command gets a fresh one.
"""

from __future__ import annotations

import contextlib
import functools
import http
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import IO, Any

import requests

from backends.sandbox import archive
from backends.sandbox.base import Ran
from backends.sandbox.box import FIRST_LOOK, LISTEN, LOOK_SHARE, Box
from backends.sandbox.output import CappedOutput, Frames
from mergemill.errors import Stopped

STAYS = "sleep {seconds:.0f} & wait"
"""What the container itself does; bash, for it takes in orphans that end."""
TIMED_OUT = 124
"""`timeout`'s exit code when the time was up."""
KILLED = 137
KILL_AFTER = 5.0
"""Seconds a command may take to end when it is told to."""
GRACE = 10.0
"""Seconds after which a command that `timeout` should have ended takes the container with it."""


def staying(seconds: float) -> tuple[str, ...]:
    """The command of a container that stays so long."""
    return ("/bin/bash", "-c", STAYS.format(seconds=seconds))


class StayingBox:
    """See `backends.sandbox.base.Shell`. To be used by one thread at a time.

    Args:
        make: makes a container of `staying`, not yet started.
        tree: opens a tar stream that is unpacked at `/` first.
        files: absolute path -> content, put there, too.
        drop: is given, as a function of its id, each that is not needed any more.
        errors: turns the engine's exceptions into this program's.
        env: variables of each command.
        workdir: folder in which each starts.
    """

    def __init__(
        self,
        make: Callable[[], Box],
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None,
        files: Mapping[str, bytes],
        drop: Callable[[Callable[[], str]], None],
        errors: Callable[[], AbstractContextManager[None]],
        *,
        env: Mapping[str, str],
        workdir: str,
    ) -> None:
        self._make = make
        self._tree = tree
        self._files = files
        self._drop = drop
        self._errors = errors
        self._env = dict(env)
        self._workdir = workdir
        self._box: Box | None = None

    def run(self, command: str, *, seconds: float) -> Ran:
        """Run a line of bash."""
        with self._errors():
            box = self._started()
            words = ["timeout", "-k", f"{KILL_AFTER:.0f}", f"{seconds:.3f}", "/bin/bash", "-c", command]
            try:
                made = box.client.exec_create(box.id, words, environment=self._env, workdir=self._workdir)
                return self._follow(box, made["Id"], seconds)
            except requests.HTTPError as error:
                if error.response is None or error.response.status_code != http.HTTPStatus.CONFLICT:
                    raise
                self.close()  # it ended between two commands: its time was up, or a command ended it
                return Ran(exit_code=KILLED, output="", files={}, seconds=0.0, killed_by="time")

    def close(self) -> None:
        """Let go of the container."""
        if self._box is not None:
            self._drop(functools.partial(_id, self._box))
            self._box = None

    def _started(self) -> Box:
        if self._box is None:
            box = self._make()
            self._box = box
            if self._files:
                box.put(archive.pack(self._files))
            if self._tree is not None:
                with self._tree() as tree:
                    box.put(archive.pieces(tree))
            box.client.start(box.id)
        return self._box

    def _follow(self, box: Box, exec_id: str, seconds: float) -> Ran:
        output, started = CappedOutput(box.limits.output_bytes), time.monotonic()
        with _stream(box, exec_id) as stream:
            killed_by = _until_done(box, exec_id, stream, Frames(output), started + seconds + KILL_AFTER + GRACE)
        took = time.monotonic() - started
        if box.stopping.is_set():
            raise Stopped("stopped")
        code = KILLED if killed_by else int(box.client.exec_inspect(exec_id)["ExitCode"] or 0)
        if killed_by:
            self.close()
        elif code in (TIMED_OUT, KILLED) and took >= seconds:
            killed_by = "time"
        elif code == KILLED and box.client.inspect_container(box.id)["State"]["OOMKilled"]:
            killed_by = "memory"
        return Ran(exit_code=code, output=output.text(), files={}, seconds=took, killed_by=killed_by)


@contextlib.contextmanager
def _stream(box: Box, exec_id: str) -> Iterator[Any]:
    stream = box.client.exec_start(exec_id, socket=True)
    try:
        yield stream
    finally:
        stream._response.close()
        stream.close()


def _until_done(box: Box, exec_id: str, stream: Any, frames: Frames, deadline: float) -> str | None:
    """Take the output until the command is done; what the container was ended for by us.

    A command may leave others behind that hold its output open: when it is silent it is asked whether it still runs.
    """
    look_at = time.monotonic() + FIRST_LOOK
    with contextlib.closing(select.epoll()) as poll:
        poll.register(stream.fileno(), select.EPOLLIN)
        while True:
            if poll.poll(LISTEN / 4):
                if not (data := _read(stream)):
                    return None
                frames.feed(data)
            elif not box.client.exec_inspect(exec_id)["Running"]:
                return None
            now = time.monotonic()
            if now >= look_at:
                if box.disk_is_full():
                    box.kill()
                    return "disk"
                look_at = time.monotonic() + max(FIRST_LOOK, (time.monotonic() - now) / LOOK_SHARE)
            if now >= deadline or box.stopping.is_set():
                box.kill()
                return "time"


def _read(stream: Any) -> bytes:
    try:
        return bytes(stream.read(1 << 18) or b"")
    except ConnectionError:
        return b""


def _id(box: Box) -> str:
    return box.id
