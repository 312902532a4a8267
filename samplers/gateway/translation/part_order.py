"""An order of a stream's parts in which each part ends before the next begins, as Messages and Responses need it.

Chat completions may send pieces of several calls in turns. The pieces of a part that begins while a call is not
complete are held back until it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from backends.llm.call_pieces import is_whole_object
from backends.llm.conversations.parts import read_reasoning
from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json

BLOCK = "block"
REASONING = "reasoning"
TEXT = "text"
CALL = "call"


@dataclass(frozen=True)
class StreamPart:
    """A piece of a stream: a signed block, text, or the piece of a call, which is a `Json`."""

    kind: str
    value: Any

    @property
    def call(self) -> int | None:
        """The index of its call; None for all others."""
        return self.value["index"] if self.kind == CALL else None


@dataclass
class _Group:
    """Pieces of a call, or of everything between two calls."""

    call: int | None
    pieces: list[StreamPart] = field(default_factory=list)


class PartOrder:
    """Puts the pieces of normalised chunks in order."""

    def __init__(self) -> None:
        self._head: int | None = None
        self._arguments: list[str] = []
        self._held: list[_Group] = []
        self._ended: set[int] = set()

    def add(self, delta: Json) -> Iterator[StreamPart]:
        """Yield the pieces that can be given on after a delta.

        Raises:
            GatewayFailure: it goes on with a call that was complete.
        """
        for piece in split_delta(delta):
            yield from self._add_piece(piece)

    def finish(self) -> Iterator[StreamPart]:
        """Yield the held pieces at the end of the stream."""
        while self._held:
            yield from self._advance()

    def _add_piece(self, piece: StreamPart) -> Iterator[StreamPart]:
        if piece.call in self._ended:
            if _read_arguments(piece).strip():
                raise GatewayFailure(ExchangeFailure.NONSENSE, "the stream goes back to an earlier tool call", 502)
            return
        if piece.call == self._head:
            yield self._give(piece)
        else:
            self._hold(piece)
        while self._held and (self._head is None or is_whole_object(self._arguments)):
            yield from self._advance()

    def _hold(self, piece: StreamPart) -> None:
        group = next((held for held in self._held if held.call is not None and held.call == piece.call), None)
        if group is None and piece.call is None and self._held and self._held[-1].call is None:
            group = self._held[-1]
        if group is None:
            group = _Group(piece.call)
            self._held.append(group)
        group.pieces.append(piece)

    def _advance(self) -> Iterator[StreamPart]:
        if self._head is not None:
            self._ended.add(self._head)
        group = self._held.pop(0)
        self._head, self._arguments = group.call, []
        for piece in group.pieces:
            yield self._give(piece)

    def _give(self, piece: StreamPart) -> StreamPart:
        if text := _read_arguments(piece):
            self._arguments.append(text)
        return piece


def split_delta(delta: Json) -> Iterator[StreamPart]:
    """Yield the pieces of a normalised delta."""
    for block in delta.get("thinking_blocks") or ():
        yield StreamPart(BLOCK, block)
    if reasoning := read_reasoning(delta):
        yield StreamPart(REASONING, reasoning)
    if text := delta.get("content") or delta.get("refusal"):
        yield StreamPart(TEXT, text)
    for call in delta.get("tool_calls") or ():
        yield StreamPart(CALL, call)


def _read_arguments(piece: StreamPart) -> str:
    if piece.kind != CALL:
        return ""
    return str((piece.value.get("function") or {}).get("arguments") or "")
