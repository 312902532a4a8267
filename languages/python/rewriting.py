"""Rewrites of Python files that keep their behaviour."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping
from itertools import pairwise

from languages.rewriting import Rewrites

_DECODER = 'exec(compile(__import__("base64").b64decode("@@"), __file__, "exec", dont_inherit=True))\n'
_WORDS = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)


def _is_program(source: bytes) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _respace(source: bytes) -> bytes | None:
    """Return the file with a blank between adjacent tokens and the same syntax tree; None where that is impossible."""
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
    """Return row (0-based) -> columns at which one token ends and the next begins."""
    gaps: dict[int, list[int]] = {}
    for before, after in pairwise(tokens):
        if before.type in _WORDS and after.type in _WORDS and before.end == after.start:
            gaps.setdefault(after.start[0] - 1, []).append(after.start[1])
    return gaps


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


REWRITES = Rewrites(decoders={".py": _DECODER}, is_program=_is_program, respace=_respace)
