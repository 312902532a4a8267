"""Tool calls from the pieces of a stream: the only place that decides which piece belongs to which call.

A piece belongs to the call of its index, unless its id is another call's. Without an index, a new id or a new name
begins a call, and any other piece belongs to the last call. Servers differ in all of this: some leave the index out or
have the same for all calls, repeat id and name in every piece, split names, or give arguments as an object.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backends.llm.conversations.parts import ConversationError

_OWN_KEYS = frozenset(("index", "id", "type", "function"))


class CallPieceError(ConversationError):
    """A piece is not one of a call; the text is a sentence for people."""


@dataclass(frozen=True, kw_only=True)
class CallPiece:
    """A piece of a call, empty where it lacks a part. `extras`: fields that only the server knows."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class JoinedCall:
    """A call as far as its pieces have arrived. `position`: its place among the calls of the answer, from 0."""

    position: int
    given_id: str = ""
    """Id of the server; empty where it gave none."""
    id: str = ""
    """Id that clients get, fixed when they get the begin of the call."""
    name: str = ""
    parts: list[str] = field(default_factory=list)
    n_released: int = 0
    """Number of `parts` that were released."""
    extras: dict[str, Any] = field(default_factory=dict)
    is_begun: bool = False
    """Whether its begin was released."""
    is_named_again: bool = False
    """Whether its name came again once it was complete: arguments that follow are those of another call."""

    @property
    def arguments(self) -> str:
        """The text of its arguments."""
        return "".join(self.parts)

    @property
    def is_complete(self) -> bool:
        """Whether its arguments are a whole JSON object, to which no further piece can belong."""
        return is_whole_object(self.parts)


def is_whole_object(parts: Sequence[str]) -> bool:
    """Return whether pieces of a text are a JSON object together."""
    # The last piece alone excludes most of them, so that long calls are not joined again and again.
    if not parts or (parts[-1].strip() and not parts[-1].rstrip().endswith("}")):
        return False
    try:
        return isinstance(json.loads("".join(parts), strict=False), dict)
    except (ValueError, RecursionError):
        return False


def read_arguments(value: object) -> str:
    """Return the arguments of a call as text: an object is written as JSON, null is empty.

    Raises:
        CallPieceError: they are neither text, an object nor null.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise CallPieceError("the arguments of a call hold a number that JSON does not have") from error
    raise CallPieceError("the arguments of a call are neither text nor an object")


def read_piece(value: object) -> CallPiece:
    """Return the piece that an element of `tool_calls` is.

    Raises:
        CallPieceError: a field has another type than in the API.
    """
    if not isinstance(value, Mapping):
        raise CallPieceError("a tool call is not an object")
    function = value.get("function")
    if function is not None and not isinstance(function, Mapping):
        raise CallPieceError("the `function` of a tool call is not an object")
    function = function or {}
    return CallPiece(
        index=_read_index(value.get("index")),
        id=_read_text(value, "id"),
        name=_read_text(function, "name"),
        arguments=read_arguments(function.get("arguments")),
        extras={key: inner for key, inner in value.items() if key not in _OWN_KEYS},
    )


def _read_text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    if type(text) is int:  # an id that is a number
        return str(text)
    if text is not None and not isinstance(text, str):
        raise CallPieceError(f"the `{key}` of a tool call is not text")
    return text or ""


def _read_index(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise CallPieceError("the `index` of a tool call is not a whole number")
    return value


class CallJoiner:
    """Joins the pieces of an answer's calls, and releases them in a form that every client reads alike.

    In released pieces the index is the position of the call, id and whole name stand in its first piece alone, and
    calls begin in their order.

    Args:
        tools: names of the tools that the model was offered, by which names that come in pieces are recognised.
    """

    def __init__(self, tools: Collection[str] = ()) -> None:
        self.calls: list[JoinedCall] = []
        self._tools = frozenset(tools)
        self._by_id: dict[str, JoinedCall] = {}
        self._by_index: dict[int, JoinedCall] = {}
        self._last: JoinedCall | None = None

    def add(self, piece: CallPiece) -> None:
        """Add a piece to the call that it belongs to."""
        call, n_calls = self._find(piece), len(self.calls)
        if call is not None and call.is_named_again and piece.arguments.strip():
            call = self.begin(replace(piece, name=call.name))
        elif call is None:
            call = self.begin(replace(piece, name=self._complete_name(piece)))
        elif piece.name and not piece.id and not piece.arguments and call.is_complete:
            call.is_named_again = True
        elif not self._is_repetition(call, piece):
            self._extend_name(call, piece.name)
            self._add_parts(call, piece)
        is_mark = bool(piece.id or piece.name) or len(self.calls) > n_calls
        if piece.index is not None and is_mark:
            self._by_index[piece.index] = call
        self._last = call

    def begin(self, piece: CallPiece) -> JoinedCall:
        """Add a piece as a new call, and return the call."""
        call = JoinedCall(position=len(self.calls), name=piece.name)
        self.calls.append(call)
        self._add_parts(call, piece)
        return call

    def release(self, *, is_end: bool = False) -> list[CallPiece]:
        """Return pieces that were not released yet, each with its position as index; at the end all of them.

        A call is held back while its name may go on, and while a call before it is.
        """
        pieces = []
        for call in self.calls:
            if not call.is_begun and not (is_end or self._is_name_settled(call)):
                break
            text = "".join(call.parts[call.n_released :])
            if not call.is_begun:
                call.is_begun = True
                call.id = call.given_id or self._make_id(call.position)
                pieces.append(
                    CallPiece(index=call.position, id=call.id, name=call.name, arguments=text, extras=call.extras)
                )
            elif text or call.extras:
                pieces.append(CallPiece(index=call.position, arguments=text, extras=call.extras))
            call.n_released, call.extras = len(call.parts), {}
        return pieces

    def _find(self, piece: CallPiece) -> JoinedCall | None:
        """Return the call that a piece belongs to; None for a new call."""
        if self._last is None:
            return None
        if piece.id in self._by_id:
            call = self._by_id[piece.id]
            is_other = piece.index is not None and self._by_index.get(piece.index) is not call
            return None if (is_other or piece.name != call.name) and _begins_another(call, piece) else call
        if piece.index is not None:
            return self._find_by_index(piece, piece.index, self._last)
        if piece.id:
            # The id of a call may come after its name, but a name next to the id is that of a new call.
            return None if self._last.given_id or piece.name else self._last
        return self._last if self._continues(self._last, piece) else None

    def _find_by_index(self, piece: CallPiece, index: int, last: JoinedCall) -> JoinedCall | None:
        call = self._by_index.get(index)
        if call is None:
            # A piece with nothing but arguments cannot begin a call.
            return None if piece.id or piece.name else last
        if call is not last and not piece.id and not piece.name and piece.arguments.strip() and call.is_complete:
            return last
        if piece.id and call.given_id:
            return None
        return call if self._continues(call, piece, has_index=True) else None

    def _continues(self, call: JoinedCall, piece: CallPiece, *, has_index: bool = False) -> bool:
        """Return whether a piece without another id goes on with a call, by its name."""
        if not piece.name:
            return True
        if _begins_another(call, piece):
            return False
        if call.parts or piece.name == call.name:
            return piece.name == call.name
        joined = call.name + piece.name
        if piece.name in self._tools and call.name in self._tools:
            return joined in self._tools
        # Where calls have ids or indices, a name without them is the rest of a name.
        return has_index or bool(call.given_id) or self._is_beginning(joined)

    def _complete_name(self, piece: CallPiece) -> str:
        """Return the name of a new call, whose begin may have looked like the last call's name."""
        if self._last is not None and self._last.is_named_again and not piece.id:
            joined = self._last.name + piece.name
            return joined if joined in self._tools else piece.name
        return piece.name

    def _extend_name(self, call: JoinedCall, name: str) -> None:
        """Add a piece of a name; a name that is repeated is left out."""
        if not name or call.is_begun or call.parts:
            return
        joined = call.name + name
        if name.startswith(call.name) and (name == call.name or name in self._tools):
            call.name = joined if joined in self._tools else name
        else:
            call.name = joined

    def _add_parts(self, call: JoinedCall, piece: CallPiece) -> None:
        call.given_id = call.given_id or piece.id
        if piece.id:
            self._by_id[piece.id] = call
        if piece.arguments:
            call.parts.append(piece.arguments)
        call.extras |= piece.extras

    def _is_repetition(self, call: JoinedCall, piece: CallPiece) -> bool:
        """Return whether a piece repeats a whole call, as the last chunk of some servers does."""
        has_same_id = bool(piece.id) and piece.id == call.given_id
        return has_same_id and bool(piece.name) and piece.arguments == call.arguments != "" and call.is_complete

    def _is_name_settled(self, call: JoinedCall) -> bool:
        return bool(call.parts) or (
            call.name in self._tools
            and not any(tool != call.name and tool.startswith(call.name) for tool in self._tools)
        )

    def _is_beginning(self, name: str) -> bool:
        return any(tool.startswith(name) for tool in self._tools)

    def _make_id(self, position: int) -> str:
        made = f"call_{position}"
        while made in self._by_id:
            made += "_"
        self._by_id[made] = self.calls[position]
        return made


def _begins_another(call: JoinedCall, piece: CallPiece) -> bool:
    """Return whether a named piece cannot belong to a call because the call is complete."""
    brings = piece.arguments or piece.name != call.name
    return bool(piece.name and brings) and call.is_complete
