"""A container from start to end, with its limits of time, disk and output enforced.

Clients are the docker SDK's APIClients; their errors are `requests.HTTPError`s and are distinguished by status.
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
from backends.sandbox.execution import ContainerLossError, ExecResult, ResourceLimits
from backends.sandbox.host_disk import DiskObserver, HostDisk
from backends.sandbox.mounts import Mount
from backends.sandbox.output import BoundedBuffer, CappedOutput, FrameDecoder, ReadPacer
from backends.sandbox.watch import FIRST_CHECK, UsageWatch
from core.errors import CancelledRunError, Transient

log = logging.getLogger(__name__)

DROPPED_CAPABILITIES = ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP"]
HOSTNAME = "mergemill"
HOSTS_FILE = f"127.0.0.1\tlocalhost {HOSTNAME}\n::1\tlocalhost\n"
"""Content of /etc/hosts, which the engine writes only where there is a network."""
CPU_PERIOD = 100_000
"""Microseconds over which the CPUs of a container are accounted; the engine's own default."""
POLL_SECONDS = 1.0
"""Longest wait for output before the limits and `stopping` are checked."""
KILL_GRACE = 30.0
"""Seconds a killed container may take to end, and the engine to report an end."""
KILLED_EXIT_CODE = 137
"""Exit code of a container whose first process was ended by SIGKILL, or ended itself with this code."""
MEMORY_EVENT_SECONDS = 2.0
"""Time in which the engine reports that the kernel ended a process for lack of memory: it may report the end first."""
MISSING_PATH_ERRORS = ("not a directory", "too many levels of symbolic links", "too many links")
MISSING_COMMAND_ERRORS = ("executable file not found", "no such file or directory")


@dataclass
class Container:
    """A created container.

    `clients` returns the calling thread's client; `wait_threads` run the request that waits for the end. Once
    `stopping` is set, the container is killed and its result is discarded. `disk`: where the engine keeps its files.
    """

    id: str
    clients: Callable[[], Any]
    wait_threads: ThreadPoolExecutor
    limits: ResourceLimits
    stopping: threading.Event
    disk: HostDisk
    is_killed: bool = False
    """Whether this process has killed it."""
    _cpu_update: Future[None] | None = None
    """The last change of its CPUs."""

    @property
    def client(self) -> Any:
        """The calling thread's client."""
        return self.clients()

    def put_archive(self, tar: bytes | Iterable[bytes]) -> None:
        """Unpack a tar at `/`."""
        self.client.put_archive(self.id, "/", tar)

    def execute(self, collect: Sequence[str]) -> ExecResult:
        """Start the container, wait for its end and collect files.

        Raises:
            Transient: the container cannot be followed or ended, or the engine's disk was full.
            CancelledRunError: `stopping` was set meanwhile.
        """
        with self.attach() as stream:
            try:
                self.client.start(self.id)
            except requests.HTTPError as error:
                return _build_start_failure(error)
            result = self.follow(stream)
        return replace(
            result, files={path: content for path in collect if (content := self.read_file(path)) is not None}
        )

    @contextlib.contextmanager
    def attach(self, *, stdin: bool = False) -> Iterator[Any]:
        """Open the stream of the container's output and, with `stdin`, its input."""
        stream = self.client.attach_socket(self.id, params={"stdin": int(stdin), "stdout": 1, "stderr": 1, "stream": 1})
        try:
            yield stream
        finally:
            # The stream is a socket of this response, which would keep its connection otherwise.
            stream._response.close()
            stream.close()

    def follow(
        self, stream: Any, results: BoundedBuffer | None = None, seconds_left: float | None = None
    ) -> ExecResult:
        """Wait for the running container's end. No files are collected.

        Args:
            stream: attached output of the container.
            results: buffer for stdout; None for a container whose stdout is output.
            seconds_left: time limit, where it is below the container's own.

        Raises:
            Transient, CancelledRunError: as `execute`.
        """
        output = CappedOutput(self.limits.output_bytes)
        started = time.monotonic()
        # The output may stay open after the container's end, and end before it; only this request knows the exit code.
        ended = self.wait_threads.submit(self._wait)
        deadline = started + min(self.limits.seconds, seconds_left or self.limits.seconds)
        monitor = ContainerMonitor(self, stream, ended, deadline, FrameDecoder(output, results))
        killed_by = monitor.follow()
        seconds = time.monotonic() - started
        code = ended.result()
        if self.stopping.is_set():
            raise CancelledRunError("stopped")
        monitor.disk.require()
        killed_by = killed_by or self._find_kill_reason(code, seconds)
        return ExecResult(exit_code=code, output=output.get_text(), files={}, seconds=seconds, killed_by=killed_by)

    def _wait(self) -> int:
        """Return the exit code. The request stays open all the time, so it fails as soon as the engine dies."""
        return int(self.client.wait(self.id, timeout=self.limits.seconds + 2 * KILL_GRACE)["StatusCode"])

    def kill(self) -> bool:
        """Kill the container; return whether it was still running."""
        self.is_killed = True
        try:
            self.client.kill(self.id)
        except requests.HTTPError as error:
            if _get_status(error) in {http.HTTPStatus.CONFLICT, http.HTTPStatus.NOT_FOUND}:
                return False
            raise
        return True

    def count_written_bytes(self) -> int:
        """Return the size of the container's own layer in bytes."""
        containers = self.client.containers(all=True, size=True, filters={"id": self.id})
        return int(containers[0].get("SizeRw") or 0) if containers else 0

    def count_processes(self) -> int:
        """Return the number of its processes and threads."""
        return int(self.client.stats(self.id, stream=False, one_shot=True).get("pids_stats", {}).get("current") or 0)

    def set_cpu_share(self, share: float) -> None:
        """Set its CPUs, to a share of its limit, soon; a container that has ended stays as it is.

        The request of a container that ends returns only once all its output is read, by the calling thread.
        """
        self._cpu_update = self.wait_threads.submit(self._update_cpus, share, self._cpu_update)

    def _update_cpus(self, share: float, earlier: Future[None] | None) -> None:
        """Set its CPUs, after an earlier change."""
        if earlier is not None:
            wait([earlier])
        try:
            self.client.update_container(self.id, cpu_quota=int(share * self.limits.cpus * CPU_PERIOD))
        except requests.RequestException as error:
            if _get_status(error) not in {http.HTTPStatus.CONFLICT, http.HTTPStatus.NOT_FOUND}:
                log.warning("container %s keeps its CPUs: %s", self.id[:12], error)

    def _find_kill_reason(self, code: int, seconds: float) -> str | None:
        """Return `memory` or `disk` where the kernel ended a process of the container for that reason, else None.

        Raises:
            ContainerLossError: another process removed the container.
        """
        if self.has_lacked_memory() or (code == KILLED_EXIT_CODE and self._await_memory_event()):
            return "memory"
        # A single file cannot grow beyond the limit (fsize); the program then fails by itself.
        is_full = code and seconds > FIRST_CHECK and self.count_written_bytes() >= self.limits.disk_bytes
        return "disk" if is_full else None

    def has_lacked_memory(self) -> bool:
        """Return whether the kernel ended a process of the container for lack of memory.

        Raises:
            ContainerLossError: another process removed the container.
        """
        state = self.client.inspect_container(self.id)["State"]
        if state["Status"] in {"removing", "dead"}:
            raise ContainerLossError(f"container {self.id[:12]} was removed by another process while it ran")
        return bool(state["OOMKilled"])

    def explain_kill(self) -> str:
        """Return `memory` for a container whose first process SIGKILL ended, once the engine knows of that.

        Raises:
            ContainerLossError: the kernel did not end it for lack of memory, so somebody outside did, or removed it.
        """
        if not self._await_memory_event():
            raise ContainerLossError(f"container {self.id[:12]} was killed from outside while it ran")
        return "memory"

    def _await_memory_event(self) -> bool:
        """Return whether the engine reports within `MEMORY_EVENT_SECONDS` that the kernel ended a process.

        Raises:
            ContainerLossError: as `has_lacked_memory`.
        """
        deadline = time.monotonic() + MEMORY_EVENT_SECONDS
        while not self.has_lacked_memory():
            if time.monotonic() >= deadline:
                return False
            time.sleep(MEMORY_EVENT_SECONDS / 10)
        return True

    def is_running(self) -> bool:
        """Return whether the container is there and has not ended."""
        return bool(self._find_state().get("Running"))

    def require_own_end(self) -> None:
        """Raise ContainerLossError where a container that has ended was killed by neither this process nor itself."""
        state = self._find_state()
        if not self.is_killed and not state.get("Running") and state.get("ExitCode") == KILLED_EXIT_CODE:
            self.explain_kill()

    def _find_state(self) -> dict[str, Any]:
        """Return the engine's `State` of the container; empty where another thread of this process has removed it."""
        try:
            state: dict[str, Any] = self.client.inspect_container(self.id)["State"]
        except requests.HTTPError as error:
            if _get_status(error) != http.HTTPStatus.NOT_FOUND:
                raise
            return {}
        return state

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a regular file of at most MAX_FILE_BYTES, or None."""
        try:
            stream, _ = self.client.get_archive(self.id, path)
        except requests.HTTPError as error:
            if _get_status(error) < http.HTTPStatus.INTERNAL_SERVER_ERROR or any(
                words in str(error) for words in MISSING_PATH_ERRORS
            ):
                return None
            raise
        with contextlib.closing(stream):
            return archive.extract_first_file(stream)


class ContainerMonitor:
    """Follows a running container: reads its output and kills it when its time or disk is used up.

    Args:
        container: started container.
        stream: attached output of the container.
        ended: its exit code, once it has ended.
        deadline: monotonic seconds at which it is killed.
        frames: decoder of the output.
    """

    def __init__(
        self,
        container: Container,
        stream: Any,
        ended: Future[int],
        deadline: float,
        frames: FrameDecoder,
    ) -> None:
        self._container = container
        self._stream = stream
        self._ended = ended
        self._frames = frames
        self.disk = DiskObserver(container.disk)
        self._deadline = deadline
        self._watch = UsageWatch(container)
        self._pacer = ReadPacer()
        self._give_up = float("inf")
        self._kill_reason = ""
        self._kill_request: Future[bool] | None = None

    def follow(self) -> str | None:
        """Read until the container has ended and return why it was killed: `stopped`, `time`, `disk`, or None.

        Raises:
            Transient: it does not end though it was killed.
        """
        with contextlib.closing(select.epoll()) as poll:
            poll.register(self._stream.fileno(), select.EPOLLIN)
            is_open = True
            while is_open or not self._ended.done():
                self._enforce_limits(time.monotonic())
                pause = max(0.0, min(self._watch.next_check, self._deadline, self._give_up) - time.monotonic())
                if not is_open:
                    wait([self._ended], timeout=min(pause, POLL_SECONDS))
                elif poll.poll(min(pause, POLL_SECONDS)):
                    is_open = self._read_chunk()
                elif self._ended.done():
                    is_open = False
        if self._kill_request is None or not self._kill_request.result():
            return None
        log.info("container %s killed: %s", self._container.id[:12], self._kill_reason)
        return self._kill_reason

    def _read_chunk(self) -> bool:
        """Read available output and return whether there can be more."""
        try:
            data = self._stream.read(1 << 18)
        except ConnectionError:
            return False
        if data:
            self._frames.feed(data)
            self._pacer.wait(len(data))
        return bool(data)

    def _enforce_limits(self, now: float) -> None:
        self.disk.look()
        if now >= self._give_up:
            raise Transient(f"container {self._container.id[:12]} cannot be ended", advice="restart the Docker engine")
        if self._kill_request is not None or self._ended.done():
            return
        if self._container.stopping.is_set():
            self._kill("stopped")
        elif now >= self._deadline:
            self._kill("time")
        elif now >= self._watch.next_check and self._watch.check():
            self._kill("disk")

    def _kill(self, reason: str) -> None:
        """Kill the container from another thread: the request returns only once all output is read, here."""
        self._kill_reason = reason
        self._kill_request = self._container.wait_threads.submit(self._container.kill)
        self._give_up = time.monotonic() + KILL_GRACE
        self._deadline = self._watch.next_check = float("inf")


def _get_status(error: requests.RequestException) -> int:
    return error.response.status_code if error.response is not None else 0


def _build_start_failure(error: requests.HTTPError) -> ExecResult:
    """Return a shell's result for a command that does not exist (127) or cannot be executed (126).

    Raises:
        HTTPError: the start failed for another reason.
    """
    text = str(getattr(error, "explanation", error))
    missing, forbidden = any(words in text for words in MISSING_COMMAND_ERRORS), "permission denied" in text
    if "runtime create failed" not in text or not (missing or forbidden):
        raise error
    return ExecResult(exit_code=127 if missing else 126, output=text + "\n", files={}, seconds=0.0, killed_by=None)


def build_host_config(
    client: Any, limits: ResourceLimits, *, network: bool, mounts: Sequence[Mount] = ()
) -> dict[str, Any]:
    """Return the engine's options for limits, network, privileges and mounts."""
    memory = limits.memory_mb * 1024 * 1024
    ulimits = {"fsize": limits.disk_bytes, "nofile": 4096, "core": 0}
    config = client.create_host_config(
        network_mode="default" if network else "none",
        mem_limit=memory,
        memswap_limit=memory,
        shm_size=limits.shm_mb * 1024 * 1024,
        pids_limit=limits.pids,
        cpu_period=CPU_PERIOD,
        cpu_quota=int(limits.cpus * CPU_PERIOD),
        security_opt=["no-new-privileges"],
        cap_drop=DROPPED_CAPABILITIES,
        ulimits=[{"Name": name, "Soft": value, "Hard": value} for name, value in ulimits.items()],
        log_config={"Type": "none"},
        extra_hosts={HOSTNAME: "127.0.0.1"} if network else None,
        binds=[mount.format_bind() for mount in mounts],
    )
    return cast("dict[str, Any]", config)
