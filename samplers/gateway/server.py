"""The gateway as a server: its listeners, and its end by a signal, a full disk or with its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import uvicorn
import uvloop

from core.errors import InputError, MachineError, Transient, UsageError, make_write_error
from core.sockets import bind_socket
from samplers.gateway.access import GatewayUsage, RolloutAccess, Upstream
from samplers.gateway.application import AgentApplication, ControlApplication
from samplers.gateway.gateway import ModelGateway
from samplers.gateway.log import LogFolder
from samplers.gateway.upstream import UpstreamClient
from taskdb.records.base import Part

BACKLOG = 2048
LOCK_POLL_SECONDS = 0.05
START_POLL_SECONDS = 0.005
MAX_SOCKET_PATH = 107
"""Bytes of a Unix socket's path."""


class GatewayConfig(Part):
    """Everything a gateway's process is started with."""

    upstream: Upstream
    log_dir: Path
    host: str = "127.0.0.1"
    port: int | None = None
    """For agents: 0 for any free port, None for none."""
    agent_socket: Path | None = None
    """For agents, too."""
    control_socket: Path | None = None
    lock_patience: float = 0.0
    """Seconds to wait for an earlier gateway of the same folder, which finishes its calls."""
    rollouts: Mapping[str, RolloutAccess] = {}
    """Rollouts open from the start."""
    open_access: RolloutAccess | None = None
    """Access of a secret that is not registered, which begins a rollout of its own; None for none."""
    stops_at_full_disk: bool = False
    """Whether the gateway ends when it cannot record; else the rollout's usage shows it."""


class QuietServer(uvicorn.Server):
    """Server that leaves signals to its owner."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Change nothing."""
        yield


async def serve_gateway(
    config: GatewayConfig, token: str, on_ready: Callable[[int | None], None], parent: IO[bytes] | None = None
) -> Mapping[str, GatewayUsage]:
    """Serve until a signal, the parent's end or a full disk; finish and record the calls in flight.

    Args:
        config: listeners, upstream and log folder.
        token: token of the control API.
        on_ready: function that is called with the agents' port once requests are answered.
        parent: a pipe whose end shows that the parent is gone.

    Returns:
        The usage of each rollout that was still open.

    Raises:
        MachineError: a port is in use, or another gateway has the folder.
        InputError, UsageError: a folder, socket or address cannot be used.
        Transient: the disk is full.
    """
    stop = asyncio.Event()
    folder = await _lock_folder(config)
    gateway = ModelGateway(
        UpstreamClient(config.upstream),
        folder,
        open_access=config.open_access,
        on_full_disk=stop.set if config.stops_at_full_disk else None,
    )
    try:
        servers, port = await _open_listeners(config, gateway, token)
        _watch_for_end(stop, parent)
        running = [asyncio.create_task(server.serve(sockets=bound)) for server, bound in servers]
        while not all(server.started for server, _ in servers):
            await asyncio.sleep(START_POLL_SECONDS)
        on_ready(port)
        await stop.wait()
        # Read before the gateway is closed, which forgets its rollouts.
        usage = gateway.collect_usage()
    finally:
        await gateway.close()
    # The servers end last, so that the answers to calls in flight still reach their clients.
    for server, _ in servers:
        server.should_exit = True
    await asyncio.gather(*running)
    for path in (config.agent_socket, config.control_socket):
        if path:
            path.unlink(missing_ok=True)
    return usage


async def _open_listeners(
    config: GatewayConfig, gateway: ModelGateway, token: str
) -> tuple[list[tuple[QuietServer, list[socket.socket]]], int | None]:
    """Return servers with their listeners, and the agents' port, after the first rollouts were opened."""
    sockets, port = bind_agent_sockets(config)
    servers = [(make_server(AgentApplication(gateway)), sockets)]
    if config.control_socket:
        servers.append(
            (make_server(ControlApplication(gateway, token)), [bind_unix_socket(config.control_socket, 0o600)])
        )
    for name, access in config.rollouts.items():
        await gateway.open_rollout(name, access)
    return servers, port


async def _lock_folder(config: GatewayConfig) -> LogFolder:
    until = time.monotonic() + config.lock_patience
    while True:
        try:
            return LogFolder(config.log_dir)
        except MachineError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(LOCK_POLL_SECONDS)


def make_server(application: AgentApplication | ControlApplication) -> QuietServer:
    """Return a server of an application."""
    return QuietServer(
        uvicorn.Config(
            application,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=75,
            interface="asgi3",
        )
    )


def bind_agent_sockets(config: GatewayConfig) -> tuple[list[socket.socket], int | None]:
    """Return the listeners of agents and their TCP port.

    Raises:
        UsageError: there is none, or the host is not an address of this machine.
        MachineError: the port is in use.
    """
    sockets = []
    port = None
    if config.port is not None:
        sockets.append(bind_socket(config.host, config.port))
        port = int(sockets[0].getsockname()[1])
    if config.agent_socket:
        # Agents may run as any user of the machine; it is their secret that identifies them.
        sockets.append(bind_unix_socket(config.agent_socket, 0o666))
    if not sockets:
        raise UsageError("the gateway listens nowhere", advice="give it a port or a socket")
    return sockets, port


def bind_unix_socket(path: Path, mode: int) -> socket.socket:
    """Return a listener at a path; a file that an earlier gateway left there is replaced.

    Raises:
        InputError: the path is too long or not writable.
    """
    # The address of a Unix socket holds no longer path.
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise InputError(f"the path of the socket {path} has more than {MAX_SOCKET_PATH} bytes")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            path.unlink()
        listener.bind(str(path))
        path.chmod(mode)
    except OSError as error:
        listener.close()
        raise make_write_error(f"cannot make the socket {path}", error) from error
    return listener


def _watch_for_end(stop: asyncio.Event, parent: IO[bytes] | None) -> None:
    """Set an event at a signal or the end of the parent."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    if parent is not None:
        pipe = parent.fileno()

        def read_parent() -> None:
            # An empty read is the end of the pipe: the parent is gone.
            if not os.read(pipe, 4096):
                loop.remove_reader(pipe)
                stop.set()

        loop.add_reader(pipe, read_parent)


def run_gateway(config: GatewayConfig, on_ready: Callable[[int | None], None]) -> Mapping[str, GatewayUsage]:
    """Serve agents alone, without a control API, until a signal or a full disk; see `serve_gateway`."""
    return uvloop.run(serve_gateway(config, "", on_ready))


def check_disk(usage: Mapping[str, GatewayUsage]) -> None:
    """Check whether every exchange could be recorded.

    Raises:
        Transient: an exchange could not.
    """
    for name, used in usage.items():
        if used.stopped_by == "disk":
            detail = (used.last_error or {}).get("detail", "the disk is full")
            raise Transient(f"{name}: {detail}", advice="free some space, then run the same command again")
