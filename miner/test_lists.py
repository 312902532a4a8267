"""Lists of tests in rows of task sets: JSON, JSON as text, or Python's spelling of a list."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

from core.errors import InputError

LIST_NAMES: Mapping[str, tuple[str, ...]] = {
    "FAIL_TO_PASS": ("fail_to_pass", "f2p"),
    "PASS_TO_PASS": ("pass_to_pass", "p2p"),
}
"""Name of a list -> its other names in rows; upper and lower case are equal."""
MAX_PYTHON = 16 << 20
"""Characters of a value in Python's spelling, whose parser takes hundreds of bytes for each."""
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def read_test_list(row: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of a row, by any of its names; empty where it is absent, null or empty text.

    Args:
        row: a row.
        name: a key of LIST_NAMES.

    Raises:
        InputError: it is no list of texts, or the row has several lists that differ.
    """
    names = (name.lower(), *LIST_NAMES[name])
    lists = {field: parse_test_list(value, field) for field, value in row.items() if field.lower() in names}
    given = {field: tests for field, tests in lists.items() if tests}
    if len({tuple(tests) for tests in given.values()}) > 1:
        raise InputError(f"fields {' and '.join(given)} differ")
    return next(iter(given.values()), [])


def parse_test_list(value: Any, field: str) -> list[str]:
    """Return a list of tests from any of its forms; `field` names it in errors.

    Raises:
        InputError: it is no list of texts.
    """
    tests = parse_value(value, field)
    if tests is None:
        return []
    if not isinstance(tests, list | tuple | set | frozenset):
        raise InputError(f"field {field} is not a list of tests, but {_name_type(tests)}")
    for test in tests:
        if not isinstance(test, str):
            raise InputError(f"field {field} is not a list of texts: it holds {_name_type(test)}")
    return sorted(tests) if isinstance(tests, set | frozenset) else list(tests)


def parse_value(value: Any, field: str) -> Any:
    """Return a value that may be published as text, in JSON's or Python's spelling; None for empty text and NaN.

    Raises:
        InputError: it is text of another form.
    """
    if not isinstance(value, str):
        # Pandas writes a missing value as NaN.
        return None if isinstance(value, float) and math.isnan(value) else value
    if not value.strip():
        return None
    try:
        # Some sets were converted to JSON twice.
        return parse_value(json.loads(value), field)
    except (ValueError, RecursionError):
        return _parse_python(value, field)


def _parse_python(text: str, field: str) -> Any:
    """Return a literal of Python; nothing is evaluated.

    Raises:
        InputError: it is none.
    """
    if len(text) > MAX_PYTHON:
        raise InputError(f"field {field} is not JSON, and too long to be read in Python's spelling")
    try:
        with warnings.catch_warnings():
            # Of escapes that Python does not know, which stay as they are.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise InputError(f"field {field} is neither JSON nor a list in Python's spelling") from None
    # Python joins texts without a comma between them, which an array of NumPy is written with.
    if isinstance(value, list | tuple) and len(_STRING.findall(text)) > len(value):
        raise InputError(f"field {field} lacks a comma between two texts")
    return value


def _name_type(value: object) -> str:
    names = {str: "a text", bool: "a truth value", dict: "an object", type(None): "null", int: "a number"}
    return {**names, float: "a number", list: "a list", tuple: "a list"}.get(type(value), "another value")
