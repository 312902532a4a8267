"""Parts of silencers' code: templates, and functions of a file by its grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from languages.parsing import Syntax, create_parser

CODE = Path(__file__).parent / "code"
"""Templates of code in the languages of tasks; words between @ are replaced."""


def read_code(name: str, values: Mapping[str, str]) -> str:
    """Return a template with its words replaced. `values`: word -> text."""
    text = (CODE / name).read_text(encoding="utf-8")
    for word, value in values.items():
        text = text.replace(f"@{word}@", value)
    return text


@dataclass(frozen=True, kw_only=True)
class TypedFunction:
    """A function of a language with types.

    Attributes:
        body: byte after the brace that opens its body.
        result: text of its result's type, empty for none.
        parameters: name -> text of its type.
        has_receiver: whether it is a method of an object.
    """

    body: int
    result: str
    parameters: Mapping[str, str]
    has_receiver: bool


def list_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    yield node
    for child in node.children:
        yield from list_nodes(child)


def parse(syntax: Syntax, source: bytes) -> Node:
    """Return the root of a file's tree."""
    return create_parser(syntax).parse(source).root_node


def read_text(node: Node | None) -> str:
    """Return the text of a node, empty for none."""
    return node.text.decode() if node is not None and node.text is not None else ""


def insert(source: bytes, pieces: Mapping[int, str]) -> bytes:
    """Return a file with texts inserted. `pieces`: position -> text."""
    for position, text in sorted(pieces.items(), reverse=True):
        source = source[:position] + text.encode() + source[position:]
    return source


def find_typical_results(
    functions: Iterator[tuple[str, Node]], return_node: str, is_constant: Callable[[Node], bool]
) -> dict[str, str]:
    """Return type -> the constant that functions with this result return most often.

    Args:
        functions: result's type and body of each function.
        return_node: node type of statements that return.
        is_constant: whether an expression is a constant.
    """
    counts: dict[str, Counter[str]] = {}
    for result, body in functions:
        for node in list_nodes(body):
            values = node.named_children if node.type == return_node else []
            if len(values) == 1 and is_constant(values[0]):
                counts.setdefault(result, Counter())[read_text(values[0])] += 1
    return {result: count.most_common(1)[0][0] for result, count in counts.items()}
