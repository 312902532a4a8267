"""Compare two versions of a Python file: same code, same code except docstrings, or different code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from functools import lru_cache
from textwrap import dedent

from languages.code import CodeDifference

_LAYOUT_TOKENS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_HEAD = re.compile(r"^(?=[ \t]*(?:async\s+def|def|class)\s+\w)", re.MULTILINE)
_DECORATORS = re.compile(r"(^[ \t]*(@.*)?\n)*\Z", re.MULTILINE)
"""Decorators of the next function, at the end of a piece."""
_STRUCTURE_TOKENS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
"""Tokens whose position matters but not their text."""


@lru_cache(maxsize=256)
def compare_code(before: bytes, after: bytes) -> CodeDifference:
    """Compare two versions of a file by their syntax trees, or by tokens where parsing fails (Python 2)."""
    if _has_different_function(before, after):  # nearly always true, and a hundred times faster to check
        return CodeDifference.CODE
    try:
        trees = [_parse_tree(before), _parse_tree(after)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tokens = _tokenize(before)
        return CodeDifference.LAYOUT if tokens is not None and tokens == _tokenize(after) else CodeDifference.CODE
    if _is_equal(*trees):
        return CodeDifference.LAYOUT
    for tree in trees:
        _strip_docstrings(tree)
    return CodeDifference.DOCSTRINGS if _is_equal(*trees) else CodeDifference.CODE


def _has_different_function(before: bytes, after: bytes) -> bool:
    """Return whether the set of functions differs, or any of them when parsed alone.

    A function in a docstring may be taken for a real function: such a change counts as a change of code.
    """
    old, new = (_HEAD.split(source.decode(errors="replace")) for source in (before, after))
    if len(old) != len(new):
        return True
    return any(a != b and _is_different_when_parsed_alone(a, b) for a, b in zip(old, new, strict=True))


def _is_different_when_parsed_alone(*sources: str) -> bool:
    """Return whether two pieces of a file can be parsed and differ in more than docstrings."""
    try:
        trees = [_parse_tree(dedent(_DECORATORS.sub("", source)).encode()) for source in sources]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for tree in trees:
        _strip_docstrings(tree)
    return not _is_equal(*trees)


def _parse_tree(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about escapes in the code
        return ast.parse(source)


def _is_equal(node: ast.AST, other: ast.AST) -> bool:
    """Return whether two syntax trees are equal, positions ignored; stops at the first difference."""
    waiting: list[tuple[object, object]] = [(node, other)]
    while waiting:
        a, b = waiting.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, ast.AST):
            fields = [name for name in a._fields if name != "kind"]  # `kind` of a constant: whether it is u"..."
            waiting += [(getattr(a, name, None), getattr(b, name, None)) for name in fields]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            waiting += zip(a, b, strict=True)
        elif repr(a) != repr(b):  # 1 and 1.0 are equal, nan is not equal to itself: the source text is compared
            return False
    return True


def _strip_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0].value if isinstance(node.body[0], ast.Expr) else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                del node.body[0]
                if not node.body:  # as in a class with only a docstring, compared with `pass`
                    node.body.append(ast.Pass())


def _tokenize(source: bytes) -> list[tuple[int, str]] | None:
    """Return the tokens without comments and whitespace; None when tokenizing fails."""
    try:
        tokens = list(tokenize.tokenize(io.BytesIO(source).readline))
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return None
    return [
        (token.type, "" if token.type in _STRUCTURE_TOKENS else token.string)
        for token in tokens
        if token.type in _STRUCTURE_TOKENS or token.type not in _LAYOUT_TOKENS
    ]
