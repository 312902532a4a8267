"""TOML of repositories and task sets of others: bounded before it is parsed."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_LENGTH = 32 << 20
"""Characters of a document; the lists of a task's tests may be long."""
MAX_KEY_PARTS = 100
"""Parts of a dotted key."""
MAX_KEY_STEPS = 1_000_000
"""Sum of the squares of the parts of all dotted keys: parsing takes microseconds for each."""
# Texts without an end are matched, too: every character is visited once.
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"?+|'[^'\n]*+'?+)"""
_PARTS = re.compile(_PART)
_KEY = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML document.

    Raises:
        ValueError: it is not TOML, or too large or deep to be parsed.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"the document has more than {MAX_LENGTH} characters")
    _check_keys(text)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("values are nested too deeply") from error


def as_table(value: object) -> dict[str, Any]:
    """Return `value` if it is a table, else an empty table."""
    return value if isinstance(value, dict) else {}


def get_table(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return the table at nested keys; empty where there is none or another value."""
    value: Any = data
    for key in keys:
        value = as_table(value).get(key)
    return as_table(value)


def _check_keys(text: str) -> None:
    """Raise ValueError for keys that take too long: the time for a key grows with the square of its parts."""
    n_steps = 0
    for match in _KEY.finditer(text):
        if "." in (key := match[0]):
            n_parts = len(_PARTS.findall(key))
            n_steps += n_parts**2 if n_parts > 1 else 0
            if n_parts > MAX_KEY_PARTS or n_steps > MAX_KEY_STEPS:
                raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts, or too many keys have several")
