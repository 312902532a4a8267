"""Program in a pod of its own, with stdin and stdout open."""

from __future__ import annotations

import time

from backends.sandbox.container import POLL_SECONDS
from backends.sandbox.kubernetes.api import STDERR, STDOUT
from backends.sandbox.kubernetes.pod import Pod
from backends.sandbox.kubernetes.script import PROCESS_SCRIPT, Request
from backends.sandbox.output import CappedOutput, LineBuffer
from core.errors import CancelledRunError, Transient


class KubernetesProcess:
    """See `backends.sandbox.base.ContainerProcess`. A program that reads stdin sees its end when this process dies.

    Args:
        pod: ready.
        request: program, environment and files.

    Raises:
        Transient: the pod does not take it.
    """

    def __init__(self, pod: Pod, request: Request) -> None:
        self._pod = pod
        self._errors = CappedOutput(pod.limits.output_bytes)
        self._lines = LineBuffer()
        self._has_ended = False
        self._stream = pod.open_exec(PROCESS_SCRIPT, request)
        self._deadline = time.monotonic() + pod.limits.seconds

    def write(self, data: bytes) -> None:
        """Write to stdin."""
        if self._has_ended:
            raise Transient(f"the program of pod {self._pod.name} has ended")
        try:
            self._stream.write(data)
        except OSError as error:
            raise Transient(f"pod {self._pod.name} does not read its input: {error}") from error

    def read_line(self) -> bytes:
        """Return the next line of stdout, empty at the end."""
        while (line := self._lines.take_line()) is None:
            if self._pod.stopping.is_set():
                raise CancelledRunError("stopped")
            self._has_ended = time.monotonic() >= self._deadline or not self._read_message()
            if self._has_ended:
                return b""
        return line

    def _read_message(self) -> bool:
        message = self._stream.read(POLL_SECONDS)
        if message is None:
            return False
        channel, data = message
        if channel == STDOUT:
            self._lines.write(data)
        elif channel == STDERR:
            self._errors.write(data)
        return True

    def get_errors(self) -> str:
        """Return head and tail of stderr."""
        return self._errors.get_text()

    def close(self) -> None:
        """Close the streams."""
        self._stream.close()
