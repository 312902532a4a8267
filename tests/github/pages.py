"""Connections: GitHub's paging in GraphQL, with opaque cursors that contain the sort key instead of a position.

A pull request updated during a crawl therefore moves to the front of a list without shifting what comes after
the reader's cursor.
"""

from __future__ import annotations

import base64
import bisect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[Any, ...]
LARGEST_PAGE = 100


class GraphQLRequestError(Exception):
    """An error of a GraphQL answer: GitHub's `type`, and the message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(slots=True)
class Connection:
    """One page of a list."""

    nodes: Sequence[Any]
    total: int
    cursors: Sequence[str]
    more_after: bool
    more_before: bool


def encode_cursor(key: Key) -> str:
    return base64.b64encode(b"cursor:v2:" + json.dumps(key).encode()).decode()


def decode_cursor(text: str) -> Key:
    try:
        mark, inner = base64.b64decode(text, validate=True).split(b"cursor:v2:", 1)
        key = json.loads(inner)
    except (ValueError, TypeError):
        raise GraphQLRequestError(
            "INVALID_CURSOR_ARGUMENTS", f"`{text}` does not appear to be a valid cursor."
        ) from None
    if mark or not isinstance(key, list):
        raise GraphQLRequestError("INVALID_CURSOR_ARGUMENTS", f"`{text}` does not appear to be a valid cursor.")
    return tuple(key)


def check_bounds(field: str, args: Mapping[str, Any], *, wants_nodes: bool) -> None:
    """Raise GitHub's error for a page without `first` or `last`, or with too large a value."""
    first, last = args.get("first"), args.get("last")
    if first is None and last is None:
        if wants_nodes:
            raise GraphQLRequestError(
                "MISSING_PAGINATION_BOUNDARIES",
                f"You must provide a `first` or `last` value to properly paginate the `{field}` connection.",
            )
        return
    if first is not None and last is not None:
        raise GraphQLRequestError(
            "MULTIPLE_PAGINATION_BOUNDARIES",
            f"Passing both `first` and `last` to paginate the `{field}` connection is not supported.",
        )
    for name, value in (("first", first), ("last", last)):
        if value is not None and value > LARGEST_PAGE:
            raise GraphQLRequestError(
                "EXCESSIVE_PAGINATION",
                f"Requesting {value} records on the `{field}` connection exceeds the `{name}` limit of "
                f"{LARGEST_PAGE} records.",
            )
        if value is not None and value < 0:
            raise GraphQLRequestError(
                "INVALID_PAGINATION", f"`{name}` on the `{field}` connection cannot be less than zero."
            )


def paginate(
    items: Sequence[Any], key: Callable[[Any], Key], args: Mapping[str, Any], *, down: bool = False
) -> Connection:
    """Return the page of `items` for `first`/`after`/`last`/`before`, sorted by `key`, descending if `down`."""
    left = sorted(items, key=key, reverse=down)
    total = len(left)
    for name in ("after", "before"):
        if args.get(name):
            left = _slice_beyond(left, key, decode_cursor(args[name]), name, down=down)
    first, last = args.get("first"), args.get("last")
    chosen = left[:first] if first is not None else left[max(0, len(left) - last) :] if last is not None else left[:0]
    more_after = len(left) > len(chosen) if first is not None else bool(args.get("before"))
    more_before = len(left) > len(chosen) if last is not None else bool(args.get("after"))
    return Connection(chosen, total, [encode_cursor(key(item)) for item in chosen], more_after, more_before)


def _slice_beyond(ordered: list[Any], key: Callable[[Any], Key], bound: Key, side: str, *, down: bool) -> list[Any]:
    """Return the items after or before a cursor. Only a few keys are computed, however long the list is."""

    def passed(item: Any) -> bool:  # monotonic: true from some item on
        value = key(item)
        if side == "after":
            return value < bound if down else value > bound
        return value <= bound if down else value >= bound

    try:
        place = bisect.bisect_left(ordered, True, key=passed)
    except TypeError:
        raise GraphQLRequestError("INVALID_CURSOR_ARGUMENTS", "that does not appear to be a valid cursor.") from None
    return ordered[place:] if side == "after" else ordered[:place]


def paginate_by_position(items: Sequence[Any], args: Mapping[str, Any]) -> Connection:
    """Return a page of a list that is only sorted by position (labels, files, languages)."""
    page = paginate(range(len(items)), lambda index: (index,), args)
    page.nodes = [items[index] for index in page.nodes]
    return page
