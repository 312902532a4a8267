"""Program text of any language as names, strings and numbers, by a careful scan: no grammar, no failure.

Fragments of files (the new side of a hunk) are what it is for, so a string or comment may begin or end outside: what is
left open ends with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from languages.registry import language_of_file

Sort = Literal["name", "string", "number", "mark"]

_HASH = frozenset({"python", "ruby", "perl", "elixir", "julia", "php", ""})
_SLASH = frozenset(
    {"c", "c++", "rust", "go", "java", "kotlin", "javascript", "typescript", "php", "c#", "swift", "scala"}
)
_TRIPLE = frozenset({"python", "java", "kotlin", "scala", "swift", "elixir", "julia"})
_BACKTICK = frozenset({"javascript", "typescript", "go"})
_CHARACTERS = frozenset({"c", "c++", "rust", "go", "java", "kotlin", "c#", "scala", "swift"})
"""Languages in which a single quote holds one character, if it is no lifetime."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": " "}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """`text` as it stands there, without quotes for a string; `line` counts from 0, where it begins."""

    sort: Sort
    text: str
    line: int

    @property
    def value(self) -> str:
        """A string's content with its escapes read; of a raw string nearly the same."""
        return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1]) or _plain(found[1]), self.text)


def _plain(sign: str) -> str:
    """An escape that stands for its own sign; what may be a command of another language is left as it is."""
    return f"\\{sign}" if sign.isalnum() else sign


def tokens_of(text: str, path: str) -> list[Token]:
    """The tokens of a text in the language of a file of that name. Comments are left out."""
    return list(_scan(text, _scanner(language_of_file(path))))


def _scan(text: str, scanner: re.Pattern[str]) -> Iterator[Token]:
    line, counted = 0, 0
    for found in scanner.finditer(text):
        sort = found.lastgroup
        if sort == "comment":
            continue
        line += text.count("\n", counted, found.start())
        counted = found.start()
        if sort == "name":
            yield Token("name", found[0], line)
        elif sort == "number":
            yield Token("number", found[0], line)
        elif sort == "mark":
            yield Token("mark", found[0], line)
        else:
            yield Token("string", next((part for part in found.groups()[2:] if part is not None), ""), line)


@cache
def _scanner(language: str) -> re.Pattern[str]:
    """One alternation: comments first, then strings, numbers, names and marks."""
    comments = [r"(?<!\S)//[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)"] if language in _SLASH else []
    comments += [r"(?<![\w&$])#[^\n]*"] if language in _HASH else []
    prefix = r"(?:\b[rRbBuUfFL@]{1,2}|\b[cC]|\$|@)?"
    strings = []
    if language in _TRIPLE:
        strings += [prefix + r'"""((?:[^\\]|\\.)*?)(?:"""|\Z)', prefix + r"'''((?:[^\\]|\\.)*?)(?:'''|\Z)"]
    if language == "rust":
        strings.append(r'\bb?r#+"(.*?)(?:"#+|\Z)')
    if language == "c++":
        strings.append(r'\bR"[^(\s]*\((.*?)(?:\)[^"\s]*"|\Z)')
    if language in _BACKTICK:
        strings.append(r"`((?:[^`\\]|\\.)*)(?:`|\Z)")
    strings.append(prefix + r'"((?:[^"\\\n]|\\.)*)(?:"|$|\Z)')
    if language in _CHARACTERS:
        strings.append(r"'((?:[^'\\\n]|\\[^\n]{1,8}))'")
    else:
        strings.append(prefix + r"'((?:[^'\\\n]|\\.)*)(?:'|$|\Z)")
    parts = [f"(?P<comment>{'|'.join(comments)})"] if comments else [r"(?P<comment>(?!))"]
    parts.append("(?P<_string>" + "|".join(strings) + ")")
    parts.append(r"(?P<number>(?<![\w.])(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?))")
    parts.append(r"(?P<name>[^\W\d]\w*)")
    parts.append(r"(?P<mark>==|=>|->|::|:=|[^\s\w])")
    return re.compile("|".join(parts), re.DOTALL | re.MULTILINE)
