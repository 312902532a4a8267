"""Schemas from annotations, tools from signatures and docstrings."""

from __future__ import annotations

import ast

import pytest

from worlds.program.schemas import SchemaBuilder, SchemaError, derive_state_schema, derive_tool, split_docstring
from worlds.program.tree import parse_program

HEADER = """
from typing import *
Kind = Literal["a", "b"]
class Address(TypedDict):
    street: str
    floor: NotRequired[int]
class Loose(TypedDict, total=False):
    name: Required[str]
    size: float
class Loop(TypedDict):
    inner: List["Loop"]
"""
ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string"}, "floor": {"type": "integer"}},
    "required": ["street"],
    "additionalProperties": False,
}


def convert(annotation: str) -> dict[str, object]:
    return SchemaBuilder(ast.parse(HEADER)).convert(ast.parse(annotation, mode="eval").body)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("str", {"type": "string"}),
        ("float", {"type": "number"}),
        ("'bool'", {"type": "boolean"}),
        ("Any", {}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("typing.Optional[int]", {"type": ["integer", "null"]}),
        ("str | None", {"type": ["string", "null"]}),
        ("Union[int, str, None]", {"type": ["integer", "string", "null"]}),
        ("List[str]", {"type": "array", "items": {"type": "string"}}),
        ("list", {"type": "array"}),
        ("Sequence[list[int]]", {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
        ("Dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("Dict", {"type": "object"}),
        ("Kind", {"type": "string", "enum": ["a", "b"]}),
        ("Optional[Kind]", {"type": ["string", "null"], "enum": ["a", "b", None]}),
        ("Literal[1, None]", {"type": ["integer", "null"], "enum": [1, None]}),
        ("Address", ADDRESS),
        ("Optional[Address]", {**ADDRESS, "type": ["object", "null"]}),
        (
            "Loose",
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "size": {"type": "number"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        ),
        ("Annotated[int, 'cents']", {"type": "integer"}),
    ],
)
def test_an_annotation_gives_a_schema(annotation: str, schema: dict[str, object]) -> None:
    assert convert(annotation) == schema


@pytest.mark.parametrize(
    "annotation",
    ["set", "datetime", "Dict[int, str]", "Union[Address, int]", "Literal[1, 'a']", "Loop", "tuple[int, str]", "1 + 1"],
)
def test_other_annotations_are_refused(annotation: str) -> None:
    with pytest.raises(SchemaError):
        convert(annotation)


def derive(signature: str) -> dict[str, object]:
    node = ast.parse(f"def tool(self{signature}): pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    return derive_tool("tool", node, SchemaBuilder(ast.parse(HEADER))).to_json()["parameters"]  # type: ignore[no-any-return]


def test_optional_parameters_and_those_with_a_default_are_not_required() -> None:
    schema = derive(", a: int, b: Optional[str], c: int = 3, *, d: str | None = None, e: bool = True, f: str")
    assert schema["required"] == ["a", "f"]
    assert schema["properties"] == {
        "a": {"type": "integer"},
        "b": {"type": ["string", "null"]},
        "c": {"type": "integer", "default": 3},
        "d": {"type": ["string", "null"]},
        "e": {"type": "boolean", "default": True},
        "f": {"type": "string"},
    }


@pytest.mark.parametrize("signature", [", a", ", *args: int", ", **named: int", ", a: int = len('x')", ", a: int, /"])
def test_parameters_without_a_schema_are_refused(signature: str) -> None:
    with pytest.raises(SchemaError):
        derive(signature)


def test_a_docstring_gives_the_descriptions() -> None:
    text = """Lend a
    book.

    At most five.

    Args:
        book (str): The book,
            which exists.
        days: Days.

    Returns:
        days: not this one.
    """
    assert split_docstring(text) == (
        "Lend a book.\nAt most five.",
        {"book": "The book, which exists.", "days": "Days."},
    )


def test_the_schema_of_a_state_comes_from_the_annotations_of_the_attributes() -> None:
    source = f"""{HEADER}
class World:
    count: int
    def __init__(self, state):
        self.names: List[str] = state["names"]
        self.other = 1
    def tool(self): return self.helper
"""
    assert derive_state_schema(parse_program(source)) == {
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "names": {"type": "array", "items": {"type": "string"}},
            "other": {},
        },
        "required": ["count", "names", "other"],
        "additionalProperties": False,
    }
