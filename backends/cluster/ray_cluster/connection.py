"""Connection to a cluster, the list of its nodes, and the mailbox on its head."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from typing import Any
from urllib.parse import urlsplit

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from tenacity import (
    Retrying,
    retry_if_exception,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_fixed,
)

from backends.cluster.nodes import WorkerNeeds
from backends.cluster.ray_cluster.actors import Mailbox
from core.errors import MachineError

HEAD = "node:__internal_head__"
"""Resource by which Ray marks the head of a cluster."""
ENGINES = "docker"
"""Custom resource of a node: the number of workers that its Docker engine is for."""
START_NODE = """ray start --address=HOST:6379 --resources '{"docker": 4}'"""
CONNECT_SECONDS = 10.0


def _is_busy(error: BaseException) -> bool:
    """Return whether the head did not start its process for a driver (in time), which it may do the next time."""
    return isinstance(error, ConnectionAbortedError) or "client server failed" in str(error)


_CONNECT_POLICY = Retrying(
    retry=retry_if_exception(_is_busy), stop=stop_after_attempt(3), wait=wait_fixed(2), reraise=True
)
# `ray start --head` returns up to a second before the port for drivers is open.
_REFUSED_POLICY = Retrying(
    retry=retry_if_exception_type(ConnectionRefusedError), stop=stop_after_delay(5), wait=wait_fixed(0.2), reraise=True
)


def connect(address: str | None, needs: WorkerNeeds) -> None:
    """Connect to a cluster, or start a cluster on this machine.

    Raises:
        MachineError: no cluster answers, or it has another version.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    for name in ("ray", "ray.client_builder"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)  # it warns of its being enabled
    logging.getLogger("ray.util.client.logsclient").disabled = True  # lines of the head's log; workers send their own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray, about its own next versions
        if address is None:
            _start_local(needs)
            return
        require_port(address)
        try:
            _CONNECT_POLICY(ray.init, address, log_to_driver=False, logging_level=logging.WARNING)
        except (ConnectionError, RuntimeError, RayError) as error:
            text = shorten(error)
            if "version" in text.lower():
                raise MachineError(
                    f"the cluster at {address} has other versions than this machine: {text}",
                    advice="install the same Python and Ray on both",
                ) from error
            raise MachineError(f"no Ray cluster answers at {address}: {text}", advice=_HEAD_ADVICE) from error


_HEAD_ADVICE = "start one: ray start --head --ray-client-server-port=10001, or check host and port"


def _start_local(needs: WorkerNeeds) -> None:
    workers = needs.workers or os.cpu_count() or 1
    cpus = max(os.cpu_count() or 1, int(needs.cpus * workers + 0.999))
    try:
        ray.init(
            address="local",
            num_cpus=cpus,
            resources={ENGINES: workers},
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
    except (ConnectionError, RuntimeError, RayError, OSError) as error:
        raise MachineError(f"Ray does not start on this machine: {shorten(error)}") from error


def require_port(address: str) -> None:
    """Check that something listens, which Ray itself finds out after half a minute.

    Raises:
        MachineError: nothing does, or this is not an address.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or 10001
    except ValueError:
        host, port = None, 0
    if not host:
        raise MachineError(f"{address} is not the address of a cluster", advice="ray://HOST:PORT")
    try:
        _REFUSED_POLICY(socket.create_connection, (host, port), CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise MachineError(f"no Ray cluster answers at {address}: {reason}", advice=_HEAD_ADVICE) from error


def open_mailbox() -> Any:
    """Return the mailbox, on the head: any other node may be lost while a run goes on."""
    head = next(node["NodeID"] for node in list_nodes() if node["Alive"] and HEAD in node["Resources"])
    place = NodeAffinitySchedulingStrategy(node_id=head, soft=False)
    return ray.remote(Mailbox).options(num_cpus=0, max_concurrency=1000, scheduling_strategy=place).remote()


def list_nodes() -> list[dict[str, Any]]:
    """Return id, resources and state of all nodes that ever were in the cluster."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return nodes


def shorten(error: BaseException) -> str:
    """Return an error's text as a line: of a traceback its end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    shown = lines[-1:] if any(line.endswith("Traceback (most recent call last):") for line in lines) else lines[:2]
    return " ".join(shown)[:300]
