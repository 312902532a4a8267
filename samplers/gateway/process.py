"""A gateway as a child process: the interface that the driver of rollouts uses. Thread-safe."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import quote

from backends.sandbox.container_names import make_folder_prefix
from core.errors import InputError, MachineError, MergemillError, Transient, UsageError
from samplers.gateway.__main__ import TOKEN_VARIABLE
from samplers.gateway.access import Budget, GatewayUsage, RolloutAccess, Upstream
from samplers.gateway.server import GatewayConfig

__all__ = ["Budget", "GatewayProcess", "GatewayUsage", "RolloutAccess", "Upstream"]

MODULE = "samplers.gateway"
ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0
"""Time that a gateway has until it answers, beside the time for an earlier request's calls."""
STOP_SECONDS = 30.0
"""Time that a gateway without calls in flight has to end."""
CALL_SECONDS = 60.0
ERROR_LOG = ".gateway-errors.log"
_ERRORS = {error.exit_code: error for error in (UsageError, InputError, MachineError, Transient)}


def open_process(environment: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a gateway that waits for its configuration.

    Args:
        environment: all variables of the process.
        errors: file of its standard error.
    """
    return subprocess.Popen(
        [sys.executable, "-m", MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        # Ctrl-C at the terminal does not reach a session of its own, so calls in flight are still recorded.
        start_new_session=True,
        cwd=ROOT,
        env=environment,
    )


class GatewayProcess:
    """A running gateway and the rollouts that are open at it.

    Args:
        upstream: the model server.
        log_dir: folder of the logs; a single gateway at a time writes there.
        agent_socket: Unix socket for agents, in a folder that containers may mount; None for none.
        port: TCP port for agents, 0 for any free port, None for none.
        host: address of the port.

    Raises:
        MergemillError: the gateway cannot start; the error is the error of its cause.
    """

    def __init__(
        self, upstream: Upstream, log_dir: Path, *, agent_socket: Path | None, port: int | None, host: str = "127.0.0.1"
    ) -> None:
        self.log_dir = log_dir
        self.agent_socket = agent_socket
        self.host = host
        self.port = port
        self._upstream = upstream
        self._token = secrets.token_urlsafe(32)
        self._folder = Path(tempfile.mkdtemp(prefix=make_folder_prefix("gateway")))
        self._control = self._folder / "control"
        self._rollouts: dict[str, RolloutAccess] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> GatewayProcess:
        try:
            self._start({})
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid if self._process else 0

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def open_rollout(self, name: str, access: RolloutAccess) -> RolloutAccess:
        """Give a rollout access and return it.

        Raises:
            InputError: the name or the secret cannot be used.
            Transient: the log cannot be written, or the gateway does not answer.
        """
        self._call("PUT", name, access.model_dump(mode="json"))
        with self._lock:
            self._rollouts[name] = access
        return access

    def get_usage(self, name: str) -> GatewayUsage:
        """Return the usage of an open rollout.

        Raises:
            InputError: it is not open.
            Transient: the gateway does not answer.
        """
        return GatewayUsage.model_validate(self._call("GET", name))

    def close_rollout(self, name: str) -> GatewayUsage:
        """Revoke a rollout's secret and return its usage once its calls in flight have ended.

        Raises:
            InputError: it is not open.
            Transient: the gateway does not answer.
        """
        usage = GatewayUsage.model_validate(self._call("DELETE", name, wait=True))
        with self._lock:
            self._rollouts.pop(name, None)
        return usage

    def restart(self) -> None:
        """Start the gateway again after it died, at the same addresses; rollouts that were open go on."""
        with self._lock:
            if self.is_alive:
                self.stop()
            resumed = {name: access.model_copy(update={"resume": True}) for name, access in self._rollouts.items()}
            self._start(resumed)

    def stop(self) -> None:
        """End the gateway once its calls in flight are recorded."""
        process, self._process = self._process, None
        if process is None:
            return
        # The end of this pipe is the signal on which the gateway ends.
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS + self._upstream.request_timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()

    def release(self) -> None:
        """Let the gateway end by itself, once its calls in flight are recorded, without waiting for it."""
        process, self._process = self._process, None
        if process is not None and process.stdin and process.stdout:
            process.stdin.close()
            process.stdout.close()

    def kill(self) -> None:
        """End the gateway as a crash would."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _start(self, rollouts: Mapping[str, RolloutAccess]) -> None:
        config = GatewayConfig(
            upstream=self._upstream,
            log_dir=self.log_dir.absolute(),
            host=self.host,
            port=self.port,
            agent_socket=self.agent_socket,
            control_socket=self._control,
            lock_patience=self._upstream.request_timeout,
            rollouts=rollouts,
        )
        self.log_dir.mkdir(parents=True, exist_ok=True)
        # Arguments of a process are visible to other users of the machine, and its environment is not.
        environment = {**os.environ, TOKEN_VARIABLE: self._token}
        with (self.log_dir / ERROR_LOG).open("ab") as errors:
            process = open_process(environment, errors)
        try:
            self.port = self._greet(process, config)
        except BaseException:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
            raise
        # After a crash the pipes of the earlier process are still open.
        if self._process and self._process.stdin and self._process.stdout:
            self._process.stdin.close()
            self._process.stdout.close()
        self._process = process

    def _greet(self, process: subprocess.Popen[bytes], config: GatewayConfig) -> int | None:
        """Give a new process its configuration and return the port it listens at."""
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the pipes of the gateway are missing")
        try:
            process.stdin.write(config.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError as error:
            raise MachineError("the gateway does not start", advice=f"see {self.log_dir / ERROR_LOG}") from error
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS + config.lock_patience)
        line = process.stdout.readline() if ready else b""
        if not line:
            raise MachineError("the gateway does not start", advice=f"see {self.log_dir / ERROR_LOG}")
        answer = json.loads(line)
        if "error" in answer:
            raise _ERRORS.get(answer["exit_code"], MergemillError)(answer["error"], advice=answer["advice"])
        port: int | None = answer["port"]
        return port

    def _call(self, method: str, name: str, body: object = None, *, wait: bool = False) -> Any:
        """Return the response that the control API answers."""
        # A rollout is closed once its calls in flight have ended, which may take as long as the upstream permits.
        seconds = None if wait else CALL_SECONDS
        connection = UnixConnection(self._control, seconds)
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"/rollouts/{quote(name, safe='')}", content, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Transient(f"the gateway does not answer: {error}", advice="it is started again") from error
        finally:
            connection.close()
        if response.status == 200:
            return answer
        message = answer["error"]["message"]
        raise (Transient if response.status >= 500 else InputError)(message)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
