"""Shapes of requests and answers as pydantic models, and their flaws as sentences that clients can show to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

MAX_PLACE = 200
_EXPECTED = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "greater_than_equal": "a number that is not negative",
    "too_short": "a list that is not empty",
}
"""Type of an error of pydantic -> the value that was expected."""


class ApiShape(BaseModel):
    """Base of all shapes: nothing is converted, and other fields may be anything."""

    model_config = ConfigDict(strict=True, extra="ignore")


def describe_flaw(error: ValidationError, value: object) -> str:
    """Return the innermost flaw of a value as a sentence, such as "`messages.0.content` is not text or a list"."""
    flaws = error.errors(include_url=False, include_context=False, include_input=False)
    placed = [(_find_place(flaw["loc"], value), flaw["type"]) for flaw in flaws]
    # A union has flaws of its other members further out, which explain nothing.
    place = max((place for place, _ in placed), key=lambda place: place.count("."))
    kinds = [kind for other, kind in placed if other == place]
    if "missing" in kinds:
        return f"`{place}` is missing"
    expected = dict.fromkeys(_EXPECTED.get(kind, "of the type that the API names") for kind in kinds)
    return f"`{place}` is not {' or '.join(expected)}"


def _find_place(loc: tuple[int | str, ...], value: Any) -> str:
    """Return the way to a field; the names that pydantic gives to the members of a union are no part of it."""
    way = []
    for at, step in enumerate(loc):
        is_place = isinstance(step, int) and isinstance(value, list) and step < len(value)
        if is_place or (isinstance(value, Mapping) and step in value):
            value = value[step]
        elif at < len(loc) - 1 or not isinstance(value, Mapping):
            continue
        way.append(str(step))
    return ".".join(way)[:MAX_PLACE]
