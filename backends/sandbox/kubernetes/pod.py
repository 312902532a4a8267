"""A pod from its creation to its end."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from backends.sandbox.archive import MAX_FILE_BYTES
from backends.sandbox.container import HOSTS_FILE, KILL_GRACE, KILLED_EXIT_CODE, POLL_SECONDS
from backends.sandbox.execution import ContainerLossError, ExecResult, ResourceLimits
from backends.sandbox.image_registry import translate_pull_error
from backends.sandbox.kubernetes.api import STDERR, STDOUT, BusyNamespaceError, ClusterApi, ExecStream, MissingPodError
from backends.sandbox.kubernetes.manifest import CUTTER, MAIN, RELAY, iterate_containers, read_ended_state
from backends.sandbox.kubernetes.script import RUN_SCRIPT, STEP_SCRIPT, Request, parse_report
from backends.sandbox.kubernetes.tunnel import RELAY_SCRIPT
from backends.sandbox.output import BoundedBuffer, CappedOutput, ReadPacer
from core.errors import CancelledRunError, InputError, MachineError, MergemillError, Transient

log = logging.getLogger(__name__)

NO_FILES_EXIT_CODE = 125
"""Exit code of the script where it could not run the command."""
PULL_SECONDS = 1800.0
"""Seconds that a node may take for the images of a pod."""
FIRST_POLL, LONGEST_POLL = 0.1, 2.0
DRAIN_SECONDS = 0.5
"""Silence after a report that ends the reading: background processes may keep the output open."""
REPORT_BYTES = 64 * 1024
"""Beyond the collected files."""
PULL_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
START_REASONS = frozenset({"CreateContainerError", "RunContainerError", "CreateContainerConfigError"})
CUT_ADVICE = (
    "--kubernetes-helper-image needs python3, and the namespace must permit NET_ADMIN"
    " (docs/guide/operate/kubernetes.md)"
)


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A created pod. Once `stopping` is set, its commands end.

    `image` is the name by which a message names it; `pending_seconds` how long it may wait for a node with room.
    """

    name: str
    image: str
    api: ClusterApi
    limits: ResourceLimits
    stopping: threading.Event
    has_network: bool
    pending_seconds: float

    # --- start -------------------------------------------------------------------------------------------------------

    def wait_until_ready(self) -> None:
        """Wait until commands can be run.

        Raises:
            InputError: there is no such image, it cannot be started, or its registry denies access.
            MachineError: its network cannot be taken away.
            Transient: there is no room for it, or its registry or node fails.
            CancelledRunError: `stopping` was set.
        """
        created, pause = time.monotonic(), FIRST_POLL
        while not self._is_ready(time.monotonic() - created):
            if self.stopping.wait(pause):
                raise CancelledRunError("stopped")
            pause = min(pause * 1.3, LONGEST_POLL)

    def _is_ready(self, waited: float) -> bool:
        pod = self.api.get_pod(self.name)
        if pod is None:
            raise MissingPodError(f"pod {self.name} was removed by another process while it started")
        status = pod.get("status", {})
        if problem := self._find_start_problem(status, waited):
            raise problem
        states = [state.get("state", {}) for state in status.get("containerStatuses", ())]
        return bool(states) and all("running" in state for state in states)

    def _find_start_problem(self, status: Mapping[str, Any], waited: float) -> MergemillError | None:
        """Return why the pod will not start; None while it may."""
        if problem := self._find_container_problem(status):
            return problem
        if status.get("phase") == "Failed":
            message = f"{status.get('reason')}: {status.get('message', '')}"
            return Transient(f"the node rejects a pod: {message}", advice="run the same command again later")
        conditions: Mapping[str, Any] = {condition["type"]: condition for condition in status.get("conditions", ())}
        room = conditions.get("PodScheduled", {})
        if room.get("reason") == "Unschedulable" and waited > self.pending_seconds:
            asked = f"{self.limits.cpus:g} CPUs, {self.limits.memory_mb} MiB memory, {self.limits.disk_mb} MiB disk"
            message = f"no node has room for a pod of {asked}: {room.get('message', '')}"
            return Transient(message, advice="add nodes, or lower --workers, --cpus, --memory-mb or --disk-mb")
        if waited > max(PULL_SECONDS, self.pending_seconds):
            message = f"pod {self.name} did not start in {waited:.0f} s"
            return Transient(message, advice=f"kubectl describe pod {self.name}")
        return None

    def _find_container_problem(self, status: Mapping[str, Any]) -> MergemillError | None:
        for container in iterate_containers(status):
            waiting = container.get("state", {}).get("waiting", {})
            reason = waiting.get("reason", "")
            message = " ".join(waiting.get("message", reason).split())
            if reason in PULL_REASONS:
                return translate_pull_error(container.get("image", self.image), message)
            if reason in START_REASONS:
                return _describe_start(self.image, message)
        if (cut := read_ended_state(status, CUTTER)) and cut.get("exitCode"):
            detail = " ".join(cut.get("message", cut.get("reason", "")).split())[-200:]
            return MachineError(f"the network of a pod cannot be taken away: {detail}", advice=CUT_ADVICE)
        if ended := read_ended_state(status):
            return _describe_start(self.image, " ".join(ended.get("message", ended.get("reason", "")).split()))
        return None

    # --- commands ----------------------------------------------------------------------------------------------------

    def open_exec(self, script: str, request: Request) -> ExecStream:
        """Start a script of `script` with its request; the caller closes the stream."""
        hosts = "" if self.has_network else HOSTS_FILE
        stream = self.api.open_exec(self.name, MAIN, ["/bin/bash", "-c", script, hosts])
        try:
            for chunk in request.encode(self.limits):
                stream.write(chunk)
        except OSError as error:
            stream.close()
            raise Transient(f"pod {self.name} does not take its files: {error}") from error
        return stream

    def open_relay(self, path: str) -> ExecStream:
        """Start the relay of a socket, which is offered at that path; the caller closes the stream."""
        return self.api.open_exec(self.name, RELAY, ["python3", "-c", RELAY_SCRIPT.read_text(encoding="utf-8"), path])

    def run(self, request: Request, seconds: float, script: str = RUN_SCRIPT) -> ExecResult:
        """Run a command for at most so many seconds; a pod that exceeds them is deleted.

        Raises:
            Transient: the connection or the pod is lost.
            CancelledRunError: `stopping` was set.
        """
        stream = self.open_exec(script, request)
        started = time.monotonic()
        output = CappedOutput(self.limits.output_bytes)
        results = BoundedBuffer(REPORT_BYTES + len(request.collect) * (MAX_FILE_BYTES + REPORT_BYTES))
        try:
            is_done = self._follow(stream, output, results, started + seconds)
        finally:
            stream.close()
        elapsed = time.monotonic() - started
        if self.stopping.is_set():
            self.delete()
            raise CancelledRunError("stopped")
        report = parse_report(results.get_content(), request.collect) if is_done else None
        if report is None and is_done:
            code, killed_by = self._find_end(stream.exit_code)
        elif report is None:
            self.delete()
            code, killed_by = KILLED_EXIT_CODE, "time"
        else:
            code, killed_by = report.exit_code, "memory" if report.memory_kills else None
        result = ExecResult(exit_code=code, output=output.get_text(), files={}, seconds=elapsed, killed_by=killed_by)
        return replace(result, files=report.files) if report else result

    def _follow(self, stream: ExecStream, output: CappedOutput, results: BoundedBuffer, deadline: float) -> bool:
        """Read until the command has ended; return False where its time is up or `stopping` is set."""
        pacer, has_report, last_byte = ReadPacer(), False, time.monotonic()
        while (message := stream.read(DRAIN_SECONDS if has_report else POLL_SECONDS)) is not None:
            channel, data = message
            now = time.monotonic()
            if channel == STDERR:
                output.write(data)
            elif channel == STDOUT and data:
                results.write(data)
                has_report = True
            pacer.wait(len(data))
            last_byte = now if data else last_byte
            if has_report and now - last_byte >= DRAIN_SECONDS:
                return True
            if now >= deadline or self.stopping.is_set():
                return False
        return True

    def _find_end(self, exec_code: int | None) -> tuple[int, str | None]:
        """Return exit code and reason of a command whose stream ended without a report.

        Raises:
            Transient: the pod is lost, or the connection was.
        """
        # A busy node reports the end of a container, and why it ended it, many seconds after it.
        is_lost = exec_code is None or (exec_code == KILLED_EXIT_CODE and not self._answers())
        deadline = time.monotonic() + (KILL_GRACE if is_lost else 0.0)
        while True:
            pod = self.api.get_pod(self.name)
            if pod is None:
                raise MissingPodError(f"pod {self.name} was removed by another process while it ran")
            status = pod["status"]
            has_ended = status.get("phase") == "Failed" or read_ended_state(status) is not None
            if has_ended and (_is_explained(status) or time.monotonic() > deadline):
                return KILLED_EXIT_CODE, _find_kill_reason(status)
            if self.stopping.is_set():
                raise CancelledRunError("stopped")
            if time.monotonic() < deadline:
                time.sleep(POLL_SECONDS / 2)
            elif exec_code is None or is_lost:
                raise Transient(f"the connection to pod {self.name} broke", advice="run the same command again later")
            elif exec_code == NO_FILES_EXIT_CODE:
                raise Transient(f"pod {self.name} does not take its files", advice="the image needs coreutils and tar")
            else:
                return exec_code, None  # the command ended the script, whose pod still runs

    def _answers(self) -> bool:
        """Return whether a further command runs: one that killed all processes of its container left the first."""
        with (
            contextlib.suppress(Transient),
            contextlib.closing(self.open_exec(STEP_SCRIPT, Request(words=["true"]))) as stream,
        ):
            deadline = time.monotonic() + KILL_GRACE
            while time.monotonic() < deadline and stream.read(POLL_SECONDS) is not None:
                pass
            return stream.exit_code == 0
        return False

    def is_running(self) -> bool:
        """Return whether commands can still be run."""
        pod = self.api.get_pod(self.name)
        return pod is not None and pod["status"].get("phase") == "Running" and not read_ended_state(pod["status"])

    def delete(self) -> None:
        """Delete the pod; its processes end within seconds."""
        self.api.delete_pod(self.name, grace_seconds=1)


def create_pod(api: ClusterApi, manifest: Mapping[str, Any], stopping: threading.Event, pending_seconds: float) -> None:
    """Create a pod; waits while the namespace's quota is used up.

    Raises:
        BusyNamespaceError: the namespace did not take it in that time.
        MachineError, UsageError, Transient: as `ClusterApi.create_pod`.
        CancelledRunError: `stopping` was set.
    """
    deadline = time.monotonic() + pending_seconds
    while True:
        if stopping.is_set():
            raise CancelledRunError("stopped")
        try:
            return api.create_pod(manifest)
        except BusyNamespaceError:
            if time.monotonic() > deadline:
                raise
            stopping.wait(LONGEST_POLL)


def _describe_start(image: str, message: str) -> InputError:
    advice = "the image needs /bin/bash, coreutils and tar"
    return InputError(f"{image} does not start: {message[:300]}", advice=advice)


def _is_explained(status: Mapping[str, Any]) -> bool:
    """Return whether the status of an ended pod is its last: a container's end may be reported before the reason."""
    ended = read_ended_state(status)
    return bool(status.get("reason")) or ended is None or ended.get("reason") == "OOMKilled"


def _find_kill_reason(status: Mapping[str, Any]) -> str | None:
    """Return `memory`, `disk` or `time` where that ended a pod; None where its command did.

    Raises:
        Transient: the node or something else outside ended it.
    """
    reason, message = status.get("reason", ""), status.get("message", "")
    ended = read_ended_state(status) or {}
    if ended.get("reason") == "OOMKilled":
        return "memory"
    if reason == "DeadlineExceeded":
        return "time"
    if reason == "Evicted" and ("ephemeral" in message or "emptyDir" in message):
        return "disk"
    if reason:
        raise Transient(f"the node ended a pod: {reason}: {message[:200]}", advice="run the same command again later")
    if ended.get("exitCode") == KILLED_EXIT_CODE:
        raise ContainerLossError("the first process of a pod was killed from outside")
    return None
