"""Counters in test files, to find out whether a test does as much work as before, and where they are inserted.

The counters work only in the process that counts (`guest/harness/workload/timed_rounds.py`); elsewhere they cost one
comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node


@dataclass(frozen=True, order=True)
class Insertion:
    """Text at a byte of a file."""

    position: int
    text: str


@dataclass(frozen=True, kw_only=True)
class WorkCounters:
    """Counters of the blocks that a test executes, and of the sizes of its data, in the grammar of a language."""

    find_insertions: Callable[[Node], Iterable[Insertion]]
    """Returns the insertions into a test file, given its root."""
    build_helper: Callable[[Node], tuple[str | None, bytes]]
    """Returns the text that defines the counters, with the name of its file beside the test file; None as the name if
    the text stands at the end of the test file."""


def wrap(node: Node, function: str) -> Iterator[Insertion]:
    """Yield the insertions that put an expression into a call."""
    yield Insertion(node.start_byte, f"{function}(")
    yield Insertion(node.end_byte, ")")


def get_text(node: Node | None) -> bytes:
    """Return the text of a node; empty for None."""
    return (node.text or b"") if node is not None else b""
