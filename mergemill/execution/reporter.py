"""Reporter: receiver of a command's messages, events and progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mergemill.execution.progress import CountProgress, make_count_progress


def ignore_event(event: dict[str, Any]) -> None:
    """Drop an event: people read messages and the summary."""
    del event


@dataclass(frozen=True, kw_only=True)
class Reporter:
    """Receiver of the messages that a command shows while it works."""

    message: Callable[[str], None]
    """Shows a line for people."""
    event: Callable[[dict[str, Any]], None] = ignore_event
    """Takes the line of a record, an answer or a verdict."""
    open_progress: Callable[[str, int], CountProgress] = make_count_progress
    """Returns the progress of a number of things with a noun."""
