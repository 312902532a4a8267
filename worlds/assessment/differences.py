"""Difference between two states as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_ABSENT = object()


def describe_difference(before: Any, after: Any) -> str:
    """Return a line for each place where two JSON values differ: `path: old -> new`; `none` where they do not."""
    return "\n".join(_iterate_lines(before, after, "")) or "none"


def _iterate_lines(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            inner = f"{path}.{key}" if path else str(key)
            yield from _iterate_lines(before.get(key, _ABSENT), after.get(key, _ABSENT), inner)
    elif before is _ABSENT or after is _ABSENT or before != after or type(before) is not type(after):
        yield f"{path}: {_write(before)} -> {_write(after)}"


def _write(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
