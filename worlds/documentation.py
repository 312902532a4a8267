"""Documentation of a world: a title, an introduction, and the rules as a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RULES = re.compile(r"^#*[ \t]*Rules:?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_TITLE = re.compile(r"\A\s*#[^\n]*\n")


def render_documentation(title: str, introduction: str, rules: Sequence[str]) -> str:
    """Return the documentation."""
    listed = "\n".join(f"- {' '.join(rule.split())}" for rule in rules)
    return f"# {title}\n\n{introduction.strip()}\n\n## Rules\n{listed}\n"


def split_documentation(text: str) -> tuple[str, str]:
    """Return (introduction, rules) as texts; a text that names no rules is both."""
    match = _RULES.search(text)
    bare = _TITLE.sub("", text)
    if match is None:
        return bare.strip(), bare.strip()
    return _TITLE.sub("", text[: match.start()]).strip(), text[match.end() :].strip()
