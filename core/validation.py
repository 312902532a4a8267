"""Phrases for fields of input that pydantic rejects: mergemill's own words, which don't change with its version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_PROBLEMS = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "string_type": "is not a text",
    "string_too_short": "is empty",
    "string_unicode": "is not Unicode",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "model_attributes_type": "is not an object",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "json_invalid": "is not JSON",
}
"""Type of an error of pydantic -> phrase about the field."""
_FIELD = re.compile(r"[A-Za-z_]\w*")
_MEMBERS = frozenset(("str", "int", "float", "bool", "none"))
"""Members of a union, which pydantic adds to the place of an error."""


def describe_invalid(errors: Sequence[Mapping[str, Any]], whole: str = "it", *, outer: int = 0) -> str:
    """Return the first of pydantic's errors as a phrase, such as `field patch is not a text`.

    Args:
        errors: the list of `ValidationError.errors()`.
        whole: the noun for the whole input.
        outer: first parts of the error's place that are not named, such as `body` of a request.
    """
    error = errors[0]
    # The place of an error in JSON's syntax is a number of characters.
    is_syntax = error["type"] == "json_invalid"
    place = [] if is_syntax else [part for part in error["loc"][outer:] if _is_field(part)]
    subject = f"field {'.'.join(map(str, place))}" if place else whole
    if error["type"] == "value_error":
        message = str(error["ctx"]["error"])
        return f"{subject}: {message}" if place else message
    if error["type"] != "missing" and error.get("input", 0) is None:
        return f"{subject} is null"
    if problem := _PROBLEMS.get(error["type"]):
        return f"{subject} {problem}"
    if error["type"].startswith(("int", "float")) and error["type"].endswith(("type", "parsing")):
        return f"{subject} is not a number"
    return f"{subject}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _is_field(part: str | int) -> bool:
    return isinstance(part, int) or (_FIELD.fullmatch(part) is not None and part not in _MEMBERS)
