"""String literals in configuration files that are JavaScript programs."""

from __future__ import annotations

import re


def parse_quoted_words(text: str, key: str) -> list[str]:
    """Return the literals of `key: "..."` or `key: [...]` in JavaScript, unescaped; without computed values."""
    return next(iter(list_quoted_words(text, key)), [])


def list_quoted_words(text: str, key: str) -> list[list[str]]:
    """Return what `parse_quoted_words` returns for each place with the key."""
    matches = re.finditer(rf"['\"]?\b{key}['\"]?\s*:\s*(\[|'[^'\n]*'|\"[^\"\n]*\")", text)
    return [_parse_words(text[match.start(1) :], match[1]) for match in matches]


def _parse_words(text: str, start: str) -> list[str]:
    body = _read_bracketed(text) if start == "[" else start
    body = re.sub(r"^\s*//.*$", "", body, flags=re.MULTILINE)
    words = (
        literal[1] if literal[1] is not None else literal[2]
        for literal in re.finditer(r"'([^'\n]*)'|\"([^\"\n]*)\"", body)
    )
    return [word.replace("\\\\", "\\") for word in words if word]


def remove_block(text: str, key: str) -> str:
    """Return JavaScript without `key: {...}`, wherever it stands."""
    while match := re.search(rf"['\"]?\b{key}['\"]?\s*:\s*(?=\{{)", text):
        text = text[: match.start()] + text[match.end() + len(_read_bracketed(text[match.end() :])) :]
    return text


def _read_bracketed(text: str) -> str:
    """Return the text from an opening bracket or brace to its closing one, ignoring those in strings and comments."""
    opening = text[0]
    closing = {"[": "]", "{": "}"}[opening]
    depth, quote, position = 0, "", 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif quote:
            quote = "" if char == quote else quote
        elif text.startswith("//", position):
            position = text.find("\n", position) if "\n" in text[position:] else len(text)
        elif char in "'\"`":
            quote = char
        elif char in (opening, closing):
            depth += 1 if char == opening else -1
            if depth == 0:
                break
        position += 1
    return text[: position + 1]
