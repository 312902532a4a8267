"""Code of a file without its comments and strings."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from languages.parsing import create_parser
from mutation.grammars import find_grammar


def blank_texts(path: str, source: bytes) -> bytes:
    """Return a program with blanks in place of its comments and strings; as it is where its grammar is not known.

    Line ends are kept, so that lines keep their numbers.
    """
    grammar = find_grammar(path)
    if grammar is None:
        return source
    blanked = bytearray(source)
    for node in _iterate_texts(create_parser(grammar.syntax).parse(source).root_node):
        for place in range(node.start_byte, node.end_byte):
            if blanked[place] not in b"\r\n":
                blanked[place] = ord(" ")
    return bytes(blanked)


def _iterate_texts(node: Node) -> Iterator[Node]:
    """Yield the outermost comments and strings, whose nodes the grammars name much alike."""
    for child in node.named_children:
        if "comment" in child.type or "string" in child.type:
            yield child
        else:
            yield from _iterate_texts(child)
