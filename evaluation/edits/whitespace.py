"""White-space rewrites: the program is equivalent, but few of its lines keep their text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tree_sitter import Node

from languages.registry import find_parsed_language
from mutation.grammars import find_grammar
from mutation.source_file import SourceFile

_TEXTS = ("string", "regex", "jsx", "comment", "rune", "char", "heredoc")
"""Prefixes of node types in which every blank is significant."""


def respace(path: str, source: bytes) -> bytes | None:
    """Return the file with a blank between adjacent tokens; None where that is impossible.

    Strings, comments and line numbers are kept; `words.split(' ')` becomes `words . split ( ' ' )`. Some
    languages separate all tokens, others only brackets, dots and commas (`Language.rewrites`).
    """
    language, _ = find_parsed_language(path)
    if language is None:
        return None
    rewrites = language.rewrites
    if rewrites.respace is not None:
        return rewrites.respace(source)
    grammar = find_grammar(path)
    if grammar is None or not rewrites.signs:
        return None
    file = SourceFile(source, grammar)
    leaves = [node for node in file.iterate_mutable_nodes() if not node.children]
    after = _insert_blanks(
        source, [two.start_byte for leaf, two in pairwise(leaves) if _can_separate(leaf, two, rewrites.signs)]
    )
    return after if after != source and not SourceFile(after, grammar).root.has_error else None


def _can_separate(node: Node, two: Node, signs: frozenset[str]) -> bool:
    adjacent = node.end_byte == two.start_byte and (node.type in signs or two.type in signs)
    text = node.parent is not None and node.parent == two.parent and node.parent.type.startswith(_TEXTS)
    return adjacent and not text


def _insert_blanks(source: bytes, places: Iterable[int]) -> bytes:
    """Return the text with a blank at each of some ascending positions."""
    parts, last = [], 0
    for place in places:
        parts.append(source[last:place])
        last = place
    return b" ".join([*parts, source[last:]])
