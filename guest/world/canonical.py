"""Canonical JSON: the text of a value, by which states are compared byte for byte."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

MAX_DEPTH = 50
"""Levels of lists and objects; Python's own reader fails at some hundred."""

_TEXT = frozenset((str,))
_CONTAINERS = frozenset((dict, list))
_TYPES = _CONTAINERS | {str, int, float, bool, type(None)}


class NotJsonError(ValueError):
    """Value that JSON cannot carry unchanged. The text begins with the path of the culprit, such as `$.loans.L-1`."""


def encode_json(value: object) -> bytes:
    """Return the canonical JSON of a value: keys sorted, no blanks, ASCII.

    Raises:
        NotJsonError: it contains other types than dict with str keys, list, str, int, finite float, bool and None.
            Subclasses are refused, too: their actions when compared or written are their own affair.
    """
    return _encode(value, sort_keys=True)


def encode_in_order(value: object) -> bytes:
    """Return the JSON of a value as `encode_json` does, but with the keys in their order.

    A program may go by the order of its dicts: only a dict made from this text gives the same results.
    """
    return _encode(value, sort_keys=False)


def decode_json(data: bytes | str) -> Any:
    """Return the value of a JSON text.

    Raises:
        NotJsonError: it is not JSON, not finite, or nested too deeply.
    """
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJsonError(f"$: {error}") from None
    check_json(value)
    return value


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    return json.loads(json.dumps(value))


def compute_digest(data: bytes) -> str:
    """Return the sha256 (hex) of canonical JSON."""
    return hashlib.sha256(data).hexdigest()


def check_json(value: object) -> None:
    """Raise NotJsonError where JSON cannot carry a value unchanged."""
    if not _is_json(value):
        _find_culprit(value, "$", 0)


def _encode(value: object, *, sort_keys: bool) -> bytes:
    check_json(value)
    try:
        text = json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False)
    except ValueError as error:  # an integer of thousands of digits
        raise NotJsonError(f"$: {error}") from None
    return text.encode("ascii")


def _is_json(value: object) -> bool:
    """Return whether JSON can carry a value unchanged: level by level, which is fast, but finds no culprit."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            if type(item) is dict and not _TEXT.issuperset(map(type, item)):
                return False
            values = item.values() if type(item) is dict else item
            kinds = set(map(type, values))
            if not kinds <= _TYPES or (float in kinds and not all(map(_is_finite, values))):
                return False
            if kinds & _CONTAINERS:
                inner += [below for below in values if type(below) in _CONTAINERS]
        if not inner:
            return True
        level = inner
    return False


def _is_finite(value: object) -> bool:
    return type(value) is not float or math.isfinite(value)


def _find_culprit(value: object, path: str, depth: int) -> None:
    kind = type(value)
    if depth > MAX_DEPTH:
        raise NotJsonError(f"{path[:200]}: more than {MAX_DEPTH} levels")
    if kind is dict:
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) is not str:
                raise NotJsonError(f"{path}: the key {key!r:.80} is no string")
            _find_culprit(item, f"{path}.{key}", depth + 1)
    elif kind is list:
        for number, item in enumerate(value):  # type: ignore[arg-type]
            _find_culprit(item, f"{path}[{number}]", depth + 1)
    elif kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise NotJsonError(f"{path}: {value} is no number of JSON")
    elif kind not in (str, int, bool, type(None)):
        raise NotJsonError(f"{path}: a {kind.__name__} is no JSON")


def _refuse_constant(text: str) -> None:
    raise NotJsonError(f"$: {text} is no number of JSON")
