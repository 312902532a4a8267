"""Canonical JSON, schema checks and frames, which run in the container."""

from __future__ import annotations

from typing import Any

import pytest

from guest.world.canonical import MAX_DEPTH, NotJsonError, decode_json, encode_json
from guest.world.frames import FrameReader, FrameTooLongError, pack_frame
from guest.world.schema_check import find_schema_error


class Text(str):
    __slots__ = ()


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_canonical_json_has_one_form() -> None:
    assert encode_json({"b": [1, 2.0, None], "a": "ö"}) == b'{"a":"\\u00f6","b":[1,2.0,null]}'
    assert decode_json(encode_json({"b": 1, "a": [True]})) == {"a": [True], "b": 1}


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        (1, 2),
        {1: 2},
        {"a": float("nan")},
        [float("inf")],
        Text("x"),
        {Text("x"): 1},
        b"x",
        object(),
        pytest.param(10**5000, id="huge"),
        nest(60),
    ],
)
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    with pytest.raises(NotJsonError):
        encode_json(value)


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", "{", pytest.param("[" * 100_000, id="deep"), pytest.param("1" * 5000, id="huge"), "\ud800"],
)
def test_texts_that_are_no_json_are_refused(text: str) -> None:
    with pytest.raises(NotJsonError):
        decode_json(text)


def test_the_deepest_value_is_accepted() -> None:
    assert decode_json(encode_json(nest(MAX_DEPTH))) == nest(MAX_DEPTH)


@pytest.mark.parametrize(
    ("value", "schema", "error"),
    [
        (1, {"type": "integer"}, None),
        (True, {"type": "integer"}, "x is not of type integer"),
        (1, {"type": "boolean"}, "x is not of type boolean"),
        (1, {"type": "number"}, None),
        (1.5, {"type": "integer"}, "x is not of type integer"),
        (None, {"type": ["string", "null"]}, None),
        (True, {"enum": [1]}, "x is none of 1"),
        (["a", 1], {"type": "array", "items": {"type": "string"}}, "x[1] is not of type string"),
        ({"a": 1}, {"type": "object", "additionalProperties": {"type": "string"}}, "x.a is not of type string"),
        ({"a": 1}, {"properties": {}, "additionalProperties": False}, "x has no a"),
        ({}, {"required": ["a"]}, "x lacks a"),
        (
            {"a": [{"b": 1}]},
            {"properties": {"a": {"items": {"properties": {"b": {"type": "null"}}}}}},
            "x.a[0].b is not of type null",
        ),
    ],
)
def test_values_are_checked_against_schemas(value: object, schema: dict[str, Any], error: str | None) -> None:
    assert find_schema_error(value, schema, "x") == error


def test_frames_are_split_at_any_place() -> None:
    data = pack_frame(b"one") + pack_frame(b"") + pack_frame(b"three")
    reader = FrameReader(10)
    assert [frame for byte in data for frame in reader.feed(bytes([byte]))] == [b"one", b"", b"three"]
    with pytest.raises(FrameTooLongError):
        reader.feed(pack_frame(b"x" * 11))
