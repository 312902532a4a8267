"""Python with other white space: the same program, in which no line that had two words reads as before."""

from __future__ import annotations

import ast
import io
import itertools
import tokenize

_WORDS = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)


def respaced(source: bytes) -> bytes | None:
    """The file with a blank between all words that had none and were on one line; None where that cannot be done.

    Text, comments and line numbers stay; `words.split(' ')` becomes `words . split ( ' ' )`.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
        wanted = ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, LookupError, tokenize.TokenError, RecursionError):
        return None
    lines = text.splitlines(keepends=True) if "\f" not in text and "\x0b" not in text else []
    gaps: dict[int, list[int]] = {}
    for one, two in itertools.pairwise(tokens):
        if one.type in _WORDS and two.type in _WORDS and one.end == two.start:
            gaps.setdefault(two.start[0] - 1, []).append(two.start[1])
    if not gaps or max(gaps) >= len(lines):
        return None
    for row, columns in gaps.items():
        for column in reversed(columns):
            lines[row] = lines[row][:column] + " " + lines[row][column:]
    after = "".join(lines).encode(encoding)
    try:
        same = ast.dump(ast.parse(after)) == wanted
    except (SyntaxError, ValueError, RecursionError):
        return None
    return after if same and after != source else None
