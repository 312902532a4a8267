"""String literals in configuration files that are JavaScript programs."""

from __future__ import annotations

import re


def parse_quoted_words(text: str, key: str) -> list[str]:
    """Return the literals of `key: "..."` or `key: [...]` in JavaScript, unescaped; without computed values."""
    match = re.search(rf"['\"]?\b{key}['\"]?\s*:\s*(\[|'[^'\n]*'|\"[^\"\n]*\")", text)
    if not match:
        return []
    body = _read_bracketed(text[match.start(1) :]) if match[1] == "[" else match[1]
    body = re.sub(r"^\s*//.*$", "", body, flags=re.MULTILINE)
    words = (
        literal[1] if literal[1] is not None else literal[2]
        for literal in re.finditer(r"'([^'\n]*)'|\"([^\"\n]*)\"", body)
    )
    return [word.replace("\\\\", "\\") for word in words if word]


def read_block(text: str, key: str, opening: str = "{") -> str:
    """Return the first `{...}` (or `[...]`, by `opening`) that stands after `key:` in JavaScript; empty without one."""
    match = re.search(rf"['\"]?\b{key}['\"]?\s*:\s*(?=\{opening})", text)
    return _read_bracketed(text[match.end() :]) if match else ""


def split_list(text: str) -> list[str]:
    """Return the objects and string literals of a JavaScript list, which `text` begins with, in order."""
    items, position = list[str](), 1
    while position < len(text) and text[position] != "]":
        if text[position] in "{[":
            item = _read_bracketed(text[position:])
        elif literal := re.match(r"'[^'\n]*'|\"[^\"\n]*\"", text[position:]):
            item = literal.group()
        elif comment := re.match(r"//[^\n]*", text[position:]):
            position += len(comment.group())
            continue
        else:
            position += 1
            continue
        items.append(item)
        position += len(item)
    return items


def remove_block(text: str, key: str, opening: str = "{") -> str:
    """Return JavaScript without `key: {...}` (or `key: [...]`, by `opening`), wherever it stands."""
    while match := re.search(rf"['\"]?\b{key}['\"]?\s*:\s*(?=\{opening})", text):
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
