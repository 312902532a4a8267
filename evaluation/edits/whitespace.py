"""White-space rewrites: the program is equivalent, but few of its lines keep their text."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping
from itertools import pairwise

from tree_sitter import Node

from mutation.grammars import find_grammar
from mutation.source_file import SourceFile

_WORDS = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
_TREE_SITTER_SUFFIXES = frozenset({".go", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".java"})
"""Suffixes of languages in which a blank next to `_SIGNS` is insignificant."""
_SIGNS = frozenset({"(", ")", "[", "]", ".", ","})
_TEXTS = ("string", "regex", "jsx", "comment", "rune", "char", "heredoc")
"""Prefixes of node types in which every blank is significant."""


def respace(path: str, source: bytes) -> bytes | None:
    """Return the file with a blank between adjacent tokens; None where that is impossible.

    Strings, comments and line numbers are kept; `words.split(' ')` becomes `words . split ( ' ' )`. For Python, the
    result has the same syntax tree; in Go, JavaScript, TypeScript and Java only
    brackets, dots and commas are separated.
    """
    if path.endswith(".py"):
        return _respace_python(source)
    grammar = find_grammar(path) if any(path.endswith(suffix) for suffix in _TREE_SITTER_SUFFIXES) else None
    if grammar is None:
        return None
    file = SourceFile(source, grammar)
    leaves = [node for node in file.iterate_mutable_nodes() if not node.children]
    after = _insert_blanks(source, [two.start_byte for one, two in pairwise(leaves) if _can_separate(one, two)])
    return after if after != source and not SourceFile(after, grammar).root.has_error else None


def _can_separate(one: Node, two: Node) -> bool:
    beside = one.end_byte == two.start_byte and (one.type in _SIGNS or two.type in _SIGNS)
    text = one.parent is not None and one.parent == two.parent and one.parent.type.startswith(_TEXTS)
    return beside and not text


def _insert_blanks(source: bytes, places: Iterable[int]) -> bytes:
    """Return the text with a blank at each of some ascending positions."""
    parts, last = [], 0
    for place in places:
        parts.append(source[last:place])
        last = place
    return b" ".join([*parts, source[last:]])


# -------------------------------------------------------------------------------------------------------- Python


def _respace_python(source: bytes) -> bytes | None:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
        expected = ast.dump(ast.parse(source))
        after = _widen_gaps(text, _find_gaps(tokens)).encode(encoding)
        same = ast.dump(ast.parse(after)) == expected
    except (SyntaxError, ValueError, LookupError, tokenize.TokenError, RecursionError):
        return None
    return after if same and after != source else None


def _find_gaps(tokens: Iterable[tokenize.TokenInfo]) -> Mapping[int, list[int]]:
    """Return row (0-based) -> columns at which a token ends and the next begins."""
    found: dict[int, list[int]] = {}
    for one, two in pairwise(tokens):
        if one.type in _WORDS and two.type in _WORDS and one.end == two.start:
            found.setdefault(two.start[0] - 1, []).append(two.start[1])
    return found


def _widen_gaps(text: str, gaps: Mapping[int, list[int]]) -> str:
    """Return the text with blanks in the gaps.

    Raises:
        LookupError: the tokenizer counts lines differently.
    """
    lines = io.StringIO(text, newline="").readlines()
    for row, columns in gaps.items():
        for column in reversed(columns):
            lines[row] = lines[row][:column] + " " + lines[row][column:]
    return "".join(lines)
