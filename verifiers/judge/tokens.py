"""Names, strings, numbers and marks of program texts in any language, read with the lexers of Pygments.

The texts are fragments of files (the new side of a hunk), so a string or a comment may begin or end outside. Grammars
read such fragments less well: a quote without its partner turns the text behind it into names and marks. A string
without a closing quote ends with its line, or with the text where the language allows line breaks in it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String, _TokenType

from languages.registry import DEFAULT_LANGUAGE, LANGUAGES, detect_file_language

TokenType = Literal["name", "string", "number", "mark"]

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": " "}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_OPENING = re.compile(r"[A-Za-z@$]*(?P<hashes>#*)(?P<quote>\"\"\"|'''|[\"'`])")
"""Prefix and opening quote of a string; Rust's raw strings have hash signs as well."""
_CODE = re.compile(
    r'"(?P<string>(?:[^"\\\n]|\\.)*)"'
    r"|(?P<number>(?<![\w.])(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?))"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<mark>==|=>|->|::|:=|[^\s\w])"
)
"""Tokens of the text between strings and comments. Strings of preprocessor directives are still part of it."""


@dataclass(frozen=True, slots=True)
class CodeToken:
    """A token of a program text.

    Attributes:
        category: name, string, number or mark; comments are dropped.
        text: the token as written; of a string its content, without prefix and quotes.
        line: 0-based number of the line where the token begins.
    """

    category: TokenType
    text: str
    line: int

    @property
    def value(self) -> str:
        """The content of a string with its escape sequences replaced; nearly the same for a raw string."""
        return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1]) or _unescape(match[1]), self.text)


def _unescape(character: str) -> str:
    """Return the escaped character; a letter keeps its backslash, since it may belong to a regular expression."""
    return f"\\{character}" if character.isalnum() else character


def tokenize(text: str, path: str) -> list[CodeToken]:
    """Return the tokens of a text in the language of a file with this path, without comments."""
    tokens: list[CodeToken] = []
    line = 0
    for segment in _split_segments(text, _load_lexer(detect_file_language(path))):
        if segment.is_string:
            tokens.append(CodeToken("string", segment.content, line))
        else:
            tokens.extend(_tokenize_code(segment.text, line))
        line += segment.text.count("\n")
    return tokens


def _tokenize_code(text: str, first_line: int) -> Iterator[CodeToken]:
    line, counted = first_line, 0
    for match in _CODE.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if match.lastgroup == "string":
            yield CodeToken("string", match["string"], line)
        elif match.lastgroup == "name":
            yield CodeToken("name", match[0], line)
        elif match.lastgroup == "number":
            yield CodeToken("number", match[0], line)
        else:
            yield CodeToken("mark", match[0], line)


@dataclass(slots=True)
class _Segment:
    """A string with its quotes, or the program text between two strings. `closing` is empty where no quote is due."""

    text: str = ""
    is_string: bool = False
    opening: str = ""
    closing: str = ""
    depth: int = 0
    """Open brackets of interpolated code."""

    @property
    def content(self) -> str:
        """A string without prefix and quotes."""
        return self.text.removeprefix(self.opening).removesuffix(self.closing)

    @property
    def is_open(self) -> bool:
        """Whether a closing quote is due."""
        return bool(self.closing) and not self._is_closed()

    def allows_line_breaks(self) -> bool:
        return self.closing not in {'"', "'"}

    def add(self, category: _TokenType, value: str) -> None:
        """Append a token of the lexer to a string."""
        self.text += value
        if not self.opening and (match := _OPENING.match(self.text)):
            self.opening, self.closing = match[0], match["quote"] + match["hashes"]
        elif category in String.Delimiter and value == "(":  # R"delimiter( of C++
            self.opening = self.text
            self.closing = f'){self.text.partition(chr(34))[2][:-1]}"'
        elif category in String.Interpol:
            opened = sum(value.count(bracket) for bracket in "({") - sum(value.count(bracket) for bracket in ")}")
            self.depth = max(0, self.depth + opened)

    def _is_closed(self) -> bool:
        content = self.text.removeprefix(self.opening)
        escapes = len(content.removesuffix(self.closing)) - len(content.removesuffix(self.closing).rstrip("\\"))
        return self.depth == 0 and content.endswith(self.closing) and escapes % 2 == 0


def _split_segments(text: str, lexer: Lexer) -> Iterator[_Segment]:
    """Yield the strings of a text and the program text between them; comments are replaced by their line ends."""
    segment = _Segment()
    prefix = ""
    for category, value in _lex(text, lexer):
        if segment.is_open and (category in String or "\n" not in value or segment.allows_line_breaks()):
            segment.add(category, value)
        elif category in String.Affix:
            prefix += value
        elif _is_comment(category, value):
            segment = yield from _start_code(segment)
            segment.text += " " + "\n" * value.count("\n")
        elif category in String and category not in String.Symbol and category not in String.Regex:
            yield segment
            segment = _Segment(is_string=True)
            segment.add(category, prefix + value)
            prefix = ""
        else:
            segment = yield from _start_code(segment)
            segment.text, prefix = segment.text + prefix + value, ""
    yield segment


def _start_code(segment: _Segment) -> Generator[_Segment, None, _Segment]:
    """Yield a string that has ended; return the segment to which program text is added."""
    if not segment.is_string:
        return segment
    yield segment
    return _Segment()


def _lex(text: str, lexer: Lexer) -> Iterator[tuple[_TokenType, str]]:
    """Yield the lexer's tokens of the text, in which a last comment may be open."""
    ending = "\n*/" if text.rfind("/*") > text.rfind("*/") else "\n"
    for start, category, value in lexer.get_tokens_unprocessed(text + ending):
        if start >= len(text):
            return
        yield category, value[: len(text) - start]


def _is_comment(category: _TokenType, value: str) -> bool:
    """Whether a token is a comment. Some lexers class `///` and `/** */` as documentation strings."""
    if category in String.Doc:
        return value.lstrip().startswith("/")
    return category in Comment and category not in Comment.Preproc and category not in Comment.PreprocFile


@cache
def _load_lexer(language: str) -> Lexer:
    """Return the lexer of a language; data files and texts are read as Python, whose quotes and comments are common."""
    known = LANGUAGES.get(language)
    if known is None:
        return get_lexer_by_name(language or DEFAULT_LANGUAGE)
    return get_lexer_by_name(known.lexer or known.name, **known.lexer_options)
