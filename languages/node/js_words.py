"""String literals in configuration files that are JavaScript programs."""

from __future__ import annotations

import re


def parse_quoted_words(text: str, key: str) -> list[str]:
    """Return the literals of `key: "..."` or `key: [...]` in JavaScript, unescaped; without computed values."""
    match = re.search(rf"['\"]?\b{key}['\"]?\s*:\s*(\[|'[^'\n]*'|\"[^\"\n]*\")", text)
    if not match:
        return []
    body = _read_list(text[match.start(1) :]) if match[1] == "[" else match[1]
    body = re.sub(r"^\s*//.*$", "", body, flags=re.MULTILINE)
    words = (
        literal[1] if literal[1] is not None else literal[2]
        for literal in re.finditer(r"'([^'\n]*)'|\"([^\"\n]*)\"", body)
    )
    return [word.replace("\\\\", "\\") for word in words if word]


def _read_list(text: str) -> str:
    """Return the text from an opening bracket to its closing bracket, ignoring brackets in strings."""
    depth, quote, position = 0, "", 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                break
        position += 1
    return text[: position + 1]
