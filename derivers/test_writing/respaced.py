"""A program with other white space: as before in all it does, and hardly a line reads as before."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping
from itertools import pairwise

from tree_sitter import Node

from derivers.mutation.trees import Source, grammar_of

_WORDS = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
_BY_TREE = frozenset({".go", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".java"})
"""Ends of names of languages in which a blank beside these signs means nothing."""
_SIGNS = frozenset({"(", ")", "[", "]", ".", ","})
_TEXTS = ("string", "regex", "jsx", "comment", "rune", "char", "heredoc")
"""Beginnings of names of nodes in which every blank counts."""


def respaced(path: str, source: bytes) -> bytes | None:
    """The file with blanks where two words of a line had none between them; None where that cannot be done.

    Text, comments and line numbers stay; `words.split(' ')` becomes `words . split ( ' ' )`. Python, whose outcome is
    the same tree; and, beside brackets, dots and commas, Go, JavaScript, TypeScript and Java.
    """
    if path.endswith(".py"):
        return _python(source)
    grammar = grammar_of(path) if any(path.endswith(end) for end in _BY_TREE) else None
    if grammar is None:
        return None
    at = Source(source, grammar)
    leaves = [node for node in at.nodes() if not node.children]
    after = _opened(source, [two.start_byte for one, two in pairwise(leaves) if _may_part(one, two)])
    return after if after != source and not Source(after, grammar).root.has_error else None


def _may_part(one: Node, two: Node) -> bool:
    beside = one.end_byte == two.start_byte and (one.type in _SIGNS or two.type in _SIGNS)
    text = one.parent is not None and one.parent == two.parent and one.parent.type.startswith(_TEXTS)
    return beside and not text


def _opened(source: bytes, places: Iterable[int]) -> bytes:
    """The text with a blank at each of the places, which ascend."""
    parts, last = [], 0
    for place in places:
        parts.append(source[last:place])
        last = place
    return b" ".join([*parts, source[last:]])


# -------------------------------------------------------------------------------------------------------- Python


def _python(source: bytes) -> bytes | None:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
        wanted = ast.dump(ast.parse(source))
        after = _widened(text, _gaps(tokens)).encode(encoding)
        same = ast.dump(ast.parse(after)) == wanted
    except (SyntaxError, ValueError, LookupError, tokenize.TokenError, RecursionError):
        return None
    return after if same and after != source else None


def _gaps(tokens: Iterable[tokenize.TokenInfo]) -> Mapping[int, list[int]]:
    """Row, from 0 -> columns at which one word ends and another begins."""
    found: dict[int, list[int]] = {}
    for one, two in pairwise(tokens):
        if one.type in _WORDS and two.type in _WORDS and one.end == two.start:
            found.setdefault(two.start[0] - 1, []).append(two.start[1])
    return found


def _widened(text: str, gaps: Mapping[int, list[int]]) -> str:
    """The text with blanks in the gaps.

    Raises:
        LookupError: its lines are not those that the tokenizer counted.
    """
    lines = io.StringIO(text, newline="").readlines()
    for row, columns in gaps.items():
        for column in reversed(columns):
            lines[row] = lines[row][:column] + " " + lines[row][column:]
    return "".join(lines)
