"""How much two versions of a Python file have in common: the same code, the same but for docstrings, or neither."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from enum import IntEnum
from functools import lru_cache
from textwrap import dedent

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_HEAD = re.compile(r"^(?=[ \t]*(?:async\s+def|def|class)\s+\w)", re.MULTILINE)
_DECORATORS = re.compile(r"(^[ \t]*(@.*)?\n)*\Z", re.MULTILINE)
"""Those of the next function, at the end of a piece."""
_SHAPE = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
"""Tokens whose text is layout and whose place is not."""


class Sameness(IntEnum):
    """What differs at most."""

    LAYOUT = 0
    """Comments, blanks, line ends, quotes: the syntax trees are equal."""
    DOCSTRINGS = 1
    NOT = 2
    """The code differs, or cannot be read."""


@lru_cache(maxsize=256)
def sameness(before: bytes, after: bytes) -> Sameness:
    """Compare two versions of a file by their syntax trees; where Python cannot parse one (Python 2), by tokens."""
    if _function_differs(before, after):  # true of nearly all changes, and a hundred times faster to see
        return Sameness.NOT
    try:
        trees = [_tree(before), _tree(after)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tokens = _tokens(before)
        return Sameness.LAYOUT if tokens is not None and tokens == _tokens(after) else Sameness.NOT
    if _equal(*trees):
        return Sameness.LAYOUT
    for tree in trees:
        _strip_docstrings(tree)
    return Sameness.DOCSTRINGS if _equal(*trees) else Sameness.NOT


def _function_differs(before: bytes, after: bytes) -> bool:
    """Whether there are other functions, or one of them, parsed alone, differs.

    Where a docstring shows a function, that one may be taken for it: such a change counts as one of the code.
    """
    old, new = (_HEAD.split(source.decode(errors="replace")) for source in (before, after))
    if len(old) != len(new):
        return True
    return any(a != b and _parsed_alone_differs(a, b) for a, b in zip(old, new, strict=True))


def _parsed_alone_differs(*sources: str) -> bool:
    """Whether two pieces of a file can be parsed, and differ in more than docstrings."""
    try:
        trees = [_tree(dedent(_DECORATORS.sub("", source)).encode()) for source in sources]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for tree in trees:
        _strip_docstrings(tree)
    return not _equal(*trees)


def _tree(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's opinion of somebody's escapes
        return ast.parse(source)


def _equal(one: ast.AST, other: ast.AST) -> bool:
    """Whether two syntax trees are equal, places aside; stops at the first difference."""
    waiting: list[tuple[object, object]] = [(one, other)]
    while waiting:
        a, b = waiting.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, ast.AST):
            fields = [name for name in a._fields if name != "kind"]  # of a constant: whether it was u"..."
            waiting += [(getattr(a, name, None), getattr(b, name, None)) for name in fields]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            waiting += zip(a, b, strict=True)
        elif repr(a) != repr(b):  # 1 and 1.0 are equal, nan is not: what counts is how they are written
            return False
    return True


def _strip_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0].value if isinstance(node.body[0], ast.Expr) else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                del node.body[0]
                if not node.body:  # as in a class that is a docstring alone, and `pass` without one
                    node.body.append(ast.Pass())


def _tokens(source: bytes) -> list[tuple[int, str]] | None:
    """The tokens without comments and blanks; None when there are none to be had."""
    try:
        found = list(tokenize.tokenize(io.BytesIO(source).readline))
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return None
    return [
        (token.type, "" if token.type in _SHAPE else token.string)
        for token in found
        if token.type in _SHAPE or token.type not in _LAYOUT
    ]
