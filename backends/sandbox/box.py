"""One container from its start to its end, watched: time, disk, output, exit code, files.

Clients are the docker SDK's APIClients; their errors are `requests.HTTPError`s and are told apart by status.
"""

from __future__ import annotations

import contextlib
import http
import logging
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, cast

import requests

from backends.sandbox import archive
from backends.sandbox.base import Limits, Ran
from backends.sandbox.output import CappedOutput, Frames, Results
from mergemill.errors import Stopped, Transient

log = logging.getLogger(__name__)

DROPPED_CAPABILITIES = ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP"]
HOSTNAME = "mergemill"
HOSTS = f"127.0.0.1\tlocalhost {HOSTNAME}\n::1\tlocalhost\n"
"""For /etc/hosts, which the engine itself writes only where there is a network."""
FIRST_LOOK = 1.0
"""Seconds until the disk is looked at first; short runs are spared it."""
LOOK_SHARE = 0.02
"""Share of the time that may go into looking at the disk: the engine walks all new files each time."""
LISTEN = 1.0
"""Seconds after which one looks up from a silent container, to see whether it is to be stopped."""
GRACE = 30.0
"""Seconds a killed container may take to end, and the engine to tell of an end."""
NO_PATH = ("not a directory", "too many levels of symbolic links", "too many links")
NO_COMMAND = ("executable file not found", "no such file or directory")


@dataclass
class Box:
    """A created container. `clients` gives the calling thread's client; `waiters` run the request that waits.

    `stopping`: once it is set, the container is ended, and what it says counts no more.
    """

    id: str
    clients: Callable[[], Any]
    waiters: ThreadPoolExecutor
    limits: Limits
    stopping: threading.Event

    @property
    def client(self) -> Any:
        """The calling thread's client."""
        return self.clients()

    def put(self, tar: bytes | Iterable[bytes]) -> None:
        """Unpack a tar at `/`."""
        self.client.put_archive(self.id, "/", tar)

    def execute(self, collect: Sequence[str]) -> Ran:
        """Start the container, follow it to its end and bring the files back.

        Raises:
            Transient: it can be neither followed nor ended.
            Stopped: `stopping` was set meanwhile.
        """
        with self.attached() as stream:
            try:
                self.client.start(self.id)
            except requests.HTTPError as error:
                return _not_started(error)
            ran = self.follow(stream)
        return replace(ran, files={path: content for path in collect if (content := self._get(path)) is not None})

    @contextlib.contextmanager
    def attached(self, *, stdin: bool = False) -> Iterator[Any]:
        """The stream of what it prints and, if so asked, reads."""
        stream = self.client.attach_socket(self.id, params={"stdin": int(stdin), "stdout": 1, "stderr": 1, "stream": 1})
        try:
            yield stream
        finally:
            stream._response.close()
            stream.close()

    def follow(self, stream: Any, results: Results | None = None) -> Ran:
        """Follow the running container to its end; `results` takes its stdout. Brings no files.

        Raises:
            Transient, Stopped: as `execute`.
        """
        output = CappedOutput(self.limits.output_bytes)
        started = time.monotonic()
        ended = self.waiters.submit(self._wait)
        killed_by = Watch(self, stream, ended, started, Frames(output, results)).follow()
        seconds = time.monotonic() - started
        code = ended.result()
        if self.stopping.is_set():
            raise Stopped("stopped")
        killed_by = killed_by or self._why_killed(code, seconds)
        return Ran(exit_code=code, output=output.text(), files={}, seconds=seconds, killed_by=killed_by)

    def _wait(self) -> int:
        """The exit code. This request stays open all the time: that it breaks tells us of the engine's death."""
        return int(self.client.wait(self.id, timeout=self.limits.seconds + 2 * GRACE)["StatusCode"])

    def kill(self) -> bool:
        """Whether it was still running and is told to die."""
        try:
            self.client.kill(self.id)
        except requests.HTTPError as error:
            if _status(error) in {http.HTTPStatus.CONFLICT, http.HTTPStatus.NOT_FOUND}:
                return False
            raise
        return True

    def written(self) -> int:
        """Bytes in the container's own layer."""
        found = self.client.containers(all=True, size=True, filters={"id": self.id})
        return int(found[0].get("SizeRw") or 0) if found else 0

    def disk_is_full(self) -> bool:
        """Whether it has written what it may."""
        return self.written() >= self.limits.disk_mb * 1024 * 1024

    def _why_killed(self, code: int, seconds: float) -> str | None:
        """`memory` or `disk` when the kernel ended something in the box for that reason.

        Raises:
            Transient: it did not end by itself, somebody removed it.
        """
        state = self.client.inspect_container(self.id)["State"]
        if state["Status"] in {"removing", "dead"}:
            raise Transient(f"container {self.id[:12]} was removed by somebody else while it ran")
        if state["OOMKilled"]:
            return "memory"
        # A single file stops growing at the limit without our doing; the program then fails by itself.
        return "disk" if code and seconds > FIRST_LOOK and self.disk_is_full() else None

    def _get(self, path: str) -> bytes | None:
        try:
            stream, _ = self.client.get_archive(self.id, path)
        except requests.HTTPError as error:
            if _status(error) < http.HTTPStatus.INTERNAL_SERVER_ERROR or any(words in str(error) for words in NO_PATH):
                return None
            raise
        with contextlib.closing(stream):
            return archive.first_file(stream)


class Watch:
    """Follows a running container: takes its output and ends it when its time or its disk is used up."""

    def __init__(self, box: Box, stream: Any, ended: Future[int], started: float, frames: Frames) -> None:
        self._box = box
        self._stream = stream
        self._ended = ended
        self._frames = frames
        self._deadline = started + box.limits.seconds
        self._look_at = started + FIRST_LOOK
        self._give_up = float("inf")
        self._killed_by: str | None = None

    def follow(self) -> str | None:
        """Until the container has ended and its output is read; what it was killed for by us.

        Raises:
            Transient: it does not end though it was killed.
        """
        with contextlib.closing(select.epoll()) as poll:
            poll.register(self._stream.fileno(), select.EPOLLIN)
            reading = True
            while reading or not self._ended.done():
                self._check(time.monotonic())
                pause = max(0.0, min(self._look_at, self._deadline, self._give_up) - time.monotonic())
                if not reading:
                    wait([self._ended], timeout=min(pause, LISTEN))
                elif poll.poll(min(pause, LISTEN)):
                    reading = self._read()
                elif self._ended.done():
                    reading = False
        return self._killed_by

    def _read(self) -> bool:
        """Take what is there; whether there can be more."""
        try:
            data = self._stream.read(1 << 18)
        except ConnectionError:
            return False
        if data:
            self._frames.feed(data)
        return bool(data)

    def _check(self, now: float) -> None:
        if now >= self._give_up:
            raise Transient(f"container {self._box.id[:12]} cannot be ended", advice="restart the Docker engine")
        if self._killed_by or self._ended.done():
            return
        if self._box.stopping.is_set():
            self._end("stopped")
        elif now >= self._deadline:
            self._end("time")
        elif now >= self._look_at:
            full = self._box.disk_is_full()
            took = time.monotonic() - now
            self._look_at = now + took + max(FIRST_LOOK, took / LOOK_SHARE)
            if full:
                self._end("disk")

    def _end(self, reason: str) -> None:
        if self._box.kill():
            log.info("container %s ended: %s", self._box.id[:12], reason)
            self._killed_by = reason
        self._give_up = time.monotonic() + GRACE
        self._deadline = self._look_at = float("inf")


def _status(error: requests.HTTPError) -> int:
    return error.response.status_code if error.response is not None else 0


def _not_started(error: requests.HTTPError) -> Ran:
    """What a shell would say of a command that is not there or cannot be run: 127 or 126.

    Raises:
        HTTPError: it is not the command's fault.
    """
    text = str(getattr(error, "explanation", error))
    missing, forbidden = any(words in text for words in NO_COMMAND), "permission denied" in text
    if "runtime create failed" not in text or not (missing or forbidden):
        raise error
    return Ran(exit_code=127 if missing else 126, output=text + "\n", files={}, seconds=0.0, killed_by=None)


def host_config(client: Any, limits: Limits, *, network: bool, cpus: float) -> dict[str, Any]:
    """What the engine is told of a container: limits, network, privileges. `cpus`: how many the engine has."""
    memory, disk = (megabytes * 1024 * 1024 for megabytes in (limits.memory_mb, limits.disk_mb))
    ulimits = {"fsize": disk, "nofile": 4096, "core": 0}
    config = client.create_host_config(
        network_mode="default" if network else "none",
        mem_limit=memory, memswap_limit=memory, pids_limit=limits.pids,
        nano_cpus=int(min(limits.cpus, cpus) * 1e9),
        security_opt=["no-new-privileges"], cap_drop=DROPPED_CAPABILITIES,
        ulimits=[{"Name": name, "Soft": value, "Hard": value} for name, value in ulimits.items()],
        log_config={"Type": "none"},
        extra_hosts={HOSTNAME: "127.0.0.1"} if network else None,
    )  # fmt: skip
    return cast("dict[str, Any]", config)
