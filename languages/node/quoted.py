"""Words of configuration files that are programs: what stands quoted behind a key."""

from __future__ import annotations

import re


def quoted(text: str, key: str) -> list[str]:
    """The quoted words of `key: "..."` or `key: [...]` in JavaScript or JSON, unescaped; nothing that is computed."""
    found = re.search(rf"['\"]?\b{key}['\"]?\s*:\s*(\[|'[^'\n]*'|\"[^\"\n]*\")", text)
    if not found:
        return []
    body = _list(text[found.start(1) :]) if found[1] == "[" else found[1]
    body = re.sub(r"^\s*//.*$", "", body, flags=re.MULTILINE)
    words = (one[1] if one[1] is not None else one[2] for one in re.finditer(r"'([^'\n]*)'|\"([^\"\n]*)\"", body))
    return [word.replace("\\\\", "\\") for word in words if word]


def _list(text: str) -> str:
    """From an opening bracket to its closing one, which is not in a string."""
    depth, quote, at = 0, "", 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                break
        at += 1
    return text[: at + 1]
