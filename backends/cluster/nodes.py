"""Settings of a cluster's workers, reports of its nodes, and the parts that both sides of a connection need."""

from __future__ import annotations

import io
import os
import pickle
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NODE_NAME = "MERGEMILL_NODE_NAME"
"""Variable of a node's environment that names it in messages. Default: its host name."""


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """Work that a node can do."""

    name: str
    version: str
    """Of mergemill."""
    problem: str = ""
    """A line with on the next step, where the node cannot be used."""
    disk_slots: int | None = None
    """Workers that its free disk is enough for; None where that is not known."""


@dataclass(frozen=True, kw_only=True)
class WorkerNeeds:
    """Resources that a cluster reserves for each worker, and how many workers it may start; None: as many as fit."""

    cpus: float
    memory_bytes: int
    workers: int | None = None


@dataclass(frozen=True, kw_only=True)
class NodeFunctions:
    """Functions for the processes of other machines. They are pickled, so they hold no connection.

    `check` reports on a node; `stop` ends the work that the calls of its process are waiting for; `drain` lets them end
    early by themselves.
    """

    check: Callable[[], NodeReport]
    stop: Callable[[], None]
    drain: Callable[[], None]


def get_node_name() -> str:
    """Return the name of this machine in messages."""
    return os.environ.get(NODE_NAME) or socket.gethostname()


def pickle_message(message: object) -> bytes:
    """Return a message as bytes. Exceptions in it have their traceback as a note.

    An exception that cannot be pickled is replaced by an exception of the same text.
    """
    buffer = io.BytesIO()
    _MessagePickler(buffer).dump(message)
    return buffer.getvalue()


class _MessagePickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        return (
            _describe_error(obj).__reduce_ex__(pickle.DEFAULT_PROTOCOL)
            if isinstance(obj, Exception)
            else NotImplemented
        )


def _describe_error(error: Exception) -> Exception:
    note = f"on {get_node_name()}:\n{''.join(traceback.format_exception(error))}"
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - whatever its class does
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(note)
    return error
