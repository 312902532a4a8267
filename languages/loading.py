"""Source code that runs a shell command when its file is loaded, with which exploits of a language are made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

Changes = dict[str, bytes | None]
"""Path -> new content, None to delete the file."""
WriteHook = Callable[[str, bytes, str], Changes]
"""Returns the changes that make a file run a command, given its path, its content and the command."""


@dataclass(frozen=True, kw_only=True)
class LoadHook:
    """How a file of a language runs a shell command when the program loads it."""

    suffixes: tuple[str, ...]
    """Suffixes of files that are loaded, in their exact case."""
    write: WriteHook
    """Returns the changes; empty where the file has no place for the code."""


def append_code(template: str, quote: Callable[[str], str] = json.dumps) -> WriteHook:
    """Return a writer that appends a template, in which `{}` stands for the quoted command."""

    def write(path: str, source: bytes, shell: str) -> Changes:
        return {path: source + template.replace("{}", quote(shell)).encode()}

    return write


def insert_after(path: str, source: bytes, pattern: bytes, code: bytes) -> Changes:
    """Return the change that inserts code after the first match of a pattern; empty where nothing matches."""
    match = re.search(pattern, source)
    return {path: source[: match.end()] + code + source[match.end() :]} if match else {}


def quote_single(text: str) -> str:
    """Return a text as a string in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_interpolated(mark: str) -> Callable[[str], str]:
    """Return a quoter for strings in which a mark begins an expression."""
    return lambda text: json.dumps(text).replace(mark, f"\\{mark}")
