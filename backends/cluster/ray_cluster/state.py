"""Nodes, workers and attempts as the driver knows them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Record = TypeVar("Record")

REST_SECONDS = 60.0
"""First rest of a node; each further rest is twice as long."""


@dataclass
class Node:
    """A node with an engine."""

    id: str
    name: str
    slots: int
    version: str = ""
    failures: int = 0
    """In a row."""
    losses: int = 0
    """Workers lost in a row."""
    rests: int = 0
    rest_until: float = 0.0
    is_left_out: bool = False

    def rest(self) -> None:
        """Begin a rest, longer than the previous."""
        self.rest_until = time.monotonic() + REST_SECONDS * 2**self.rests
        self.rests += 1
        self.failures = 0

    @property
    def is_resting(self) -> bool:
        """Whether the node gets no record now, unless all others rest, too."""
        return time.monotonic() < self.rest_until


@dataclass
class RecordAttempt(Generic[Record]):
    """A record with a worker."""

    record: Record
    number: int = 1
    avoid: set[str] = field(default_factory=set)
    """Ids of nodes that failed at it."""
    key: str = ""
    has_failed: bool = False
    """Whether the node failed, which is not yielded as another node gets the record."""
    reference: Any = None
    is_lost: bool = False


@dataclass
class WorkerState:
    """A worker as the driver knows it."""

    actor: Any
    node: Node
    greeting: Any
    is_ready: bool = False
    attempt: RecordAttempt[Any] | None = None
