"""Syntax highlighting on the server: code as HTML with the short classes of Pygments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers, get_lexer_by_name
from pygments.token import STANDARD_TYPES, Token
from pygments.util import ClassNotFound

MAX_HIGHLIGHTED_CHARACTERS = 60_000
"""Longer code is escaped without highlighting, as lexers need seconds for it."""
MAX_HIGHLIGHTED_LINE = 1000
"""So is code with longer lines, which is generated or hostile."""
_WILDCARD = re.compile(r"[*?\[]")


def load_lexers(suffixes: Iterable[str]) -> None:
    """Load the lexers of files with these endings, so that no page waits for them."""
    for suffix in suffixes:
        highlight_file_lines("", f"x{suffix}")


def highlight_code(code: str, language: str) -> Markup:
    """Return code as HTML; plain where the language (a name or an extension) is unknown."""
    return Markup("\n").join(highlight_lines(code, _find_lexer_by_name(language)))


def highlight_file_lines(code: str, path: str) -> list[Markup]:
    """Return each line of a file's code as HTML; the language is that of the file's name."""
    return highlight_lines(code, _find_lexer_for_path(path.rpartition("/")[2]))


def highlight_lines(code: str, lexer: Lexer | None) -> list[Markup]:
    """Return each line as HTML, every token in a `<span>` with its class."""
    lines = code.split("\n")
    if lexer is None or len(code) > MAX_HIGHLIGHTED_CHARACTERS or max(map(len, lines)) > MAX_HIGHLIGHTED_LINE:
        return [escape(line) for line in lines]
    markups, current = [], Markup()
    for kind, value in lexer.get_tokens(code):
        name = _get_class(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                markups.append(current)
                current = Markup()
            if part:
                current += Markup('<span class="{}">{}</span>').format(name, part) if name else escape(part)
    markups.append(current)
    return markups[: len(lines)]


def _get_class(kind: object) -> str:
    """Return the class of a token or of the nearest ancestor that has a class."""
    while kind is not Token and kind not in STANDARD_TYPES:
        kind = getattr(kind, "parent", Token)
    return str(STANDARD_TYPES.get(kind, ""))


@lru_cache(maxsize=64)
def _find_lexer_by_name(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _find_lexer_for_path(name: str) -> Lexer | None:
    """Return the lexer of a file's name as Pygments chooses it, but without its plug-ins.

    Installed packages offer those; loading them takes longer than a page, and they would read foreign code.
    """
    lexers: list[tuple[bool, float, str, type[Lexer]]] = []
    for title, _, patterns, _ in get_all_lexers(plugins=False):
        matching = [pattern for pattern in patterns if _matches(name, pattern)]
        lexer = find_lexer_class(title) if matching else None
        if lexer is not None:
            lexers.append((name in matching, lexer.priority, lexer.__name__, lexer))
    return max(lexers)[-1](stripnl=False, ensurenl=False) if lexers else None


def _matches(name: str, pattern: str) -> bool:
    """Match as `fnmatch` does, without compiling the hundreds of patterns that are an ending or a whole name."""
    if pattern.startswith("*") and not _WILDCARD.search(pattern, 1):
        return name.endswith(pattern[1:])
    return fnmatchcase(name, pattern) if _WILDCARD.search(pattern) else name == pattern
