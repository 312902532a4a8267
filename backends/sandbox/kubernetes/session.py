"""Container session in a pod that stays."""

from __future__ import annotations

import contextlib
import functools
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO

from backends.sandbox import archive
from backends.sandbox.container import KILLED_EXIT_CODE
from backends.sandbox.execution import ExecResult
from backends.sandbox.kubernetes.api import MissingPodError
from backends.sandbox.kubernetes.mounts import CopyMount, SocketMount
from backends.sandbox.kubernetes.pod import Pod
from backends.sandbox.kubernetes.script import STEP_SCRIPT, Request
from backends.sandbox.kubernetes.tunnel import SocketTunnel
from backends.sandbox.session import EXEC_GRACE, KILL_AFTER_SECONDS, TIMEOUT_EXIT_CODE
from core.errors import Transient

FILE_SECONDS = 600.0
"""Time limit for writing or reading files."""


class KubernetesSession:
    """See `backends.sandbox.base.ContainerSession`.

    To be used by a single thread at a time; another thread may observe.

    Args:
        make: function that creates a pod and returns it once it is ready.
        remove: function that is called with the name of a pod that is not needed any more.
        tree: function that opens a tar stream that is unpacked at `/` first.
        files: absolute path -> content, written before the start.
        env: environment variables of each command.
        workdir: working directory of each command.
        sockets: sockets of this machine, offered in the pod.
        copies: copies of folders and volumes, written first.
    """

    def __init__(
        self,
        make: Callable[[], Pod],
        remove: Callable[[str], None],
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None,
        files: Mapping[str, bytes],
        *,
        env: Mapping[str, str],
        workdir: str,
        sockets: Sequence[SocketMount] = (),
        copies: Sequence[CopyMount] = (),
    ) -> None:
        self._make = make
        self._remove = remove
        self._tree = tree
        self._files = files
        self._env = dict(env)
        self._workdir = workdir
        self._sockets = sockets
        self._copies = copies
        self._tunnels: list[SocketTunnel] = []
        self._pod: Pod | None = None
        self._starting = threading.Lock()

    def run(self, command: str, *, seconds: float) -> ExecResult:
        """Run a line of bash."""
        pod = self._start_pod()
        words = ["timeout", "-k", f"{KILL_AFTER_SECONDS:.0f}", f"{seconds:.3f}", "/bin/bash", "-c", command]
        request = Request(words=words, env=self._env, workdir=self._workdir)
        try:
            result = pod.run(request, seconds + KILL_AFTER_SECONDS + EXEC_GRACE, STEP_SCRIPT)
        except MissingPodError:
            # It ended between two commands: it exceeded its time, or a command ended it.
            self._forget(pod)
            return ExecResult(exit_code=KILLED_EXIT_CODE, output="", files={}, seconds=0.0, killed_by="time")
        if result.killed_by in ("time", "disk") or _has_ended(pod, result):
            self._forget(pod)
        if result.killed_by == "memory" and result.exit_code != KILLED_EXIT_CODE:
            return replace(result, killed_by=None)  # the command went on without that process
        if result.exit_code in (TIMEOUT_EXIT_CODE, KILLED_EXIT_CODE) and result.seconds >= seconds:
            return replace(result, killed_by="time")
        return result

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None."""
        pod = self._pod
        if pod is None:
            return None
        with contextlib.suppress(MissingPodError):
            return pod.run(Request(words=["true"], collect=[path]), FILE_SECONDS, STEP_SCRIPT).files.get(path)
        return None

    def write_files(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files."""
        pod = self._start_pod()
        _write_tar(pod, Request(words=["true"], tar=archive.build_tar(files, mode)))

    def close(self) -> None:
        """Delete the pod."""
        if (pod := self._pod) is not None:
            self._forget(pod)

    def _forget(self, pod: Pod) -> None:
        self._close_tunnels()
        self._remove(pod.name)
        if self._pod is pod:
            self._pod = None

    def _start_pod(self) -> Pod:
        with self._starting:
            pod = self._pod  # the other thread may close it at any moment
            if pod is None:
                pod = self._make()
                try:
                    self._fill(pod)
                except BaseException:
                    self._close_tunnels()
                    self._remove(pod.name)
                    raise
                self._pod = pod
            return pod

    def _close_tunnels(self) -> None:
        while self._tunnels:
            self._tunnels.pop().close()

    def _fill(self, pod: Pod) -> None:
        for copy in self._copies:
            with tempfile.TemporaryFile() as spool:
                copy.write_tar(spool)
                spool.seek(0)
                _write_tar(pod, Request(words=["true"], tar=spool, root=copy.root))
        for socket in self._sockets:
            self._tunnels.append(SocketTunnel(functools.partial(pod.open_relay, socket.target), socket.source))
        if self._files:
            _write_tar(pod, Request(words=["true"], tar=archive.build_tar(self._files)))
        if self._tree is not None:
            # The script is given the number of bytes, and the length of the tree's tar is not known before.
            with tempfile.TemporaryFile() as spool, self._tree() as tree:
                for chunk in archive.read_chunks(tree):
                    spool.write(chunk)
                spool.seek(0)
                _write_tar(pod, Request(words=["true"], tar=spool))


def _write_tar(pod: Pod, request: Request) -> None:
    """Unpack the tar of a request.

    Raises:
        Transient: the pod was ended, for its disk is full.
    """
    result = pod.run(request, FILE_SECONDS, STEP_SCRIPT)
    if result.exit_code:
        problem = f"pod {pod.name} does not take its files: {result.killed_by or result.output[-200:]}"
        raise Transient(problem, advice="raise --disk-mb, or run the same command again later")


def _has_ended(pod: Pod, result: ExecResult) -> bool:
    """Return whether the pod ended with the command."""
    return result.exit_code == KILLED_EXIT_CODE and not pod.is_running()
