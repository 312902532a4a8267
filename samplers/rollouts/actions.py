"""Actions of a tool call, in the form of shell commands.

The programs it runs and the paths and addresses it opens.

Content that is written to a file, and words that are searched for, are not actions: a project about networks has its
`urlopen` and its addresses in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

COMMAND_FIELDS = frozenset(("command", "cmd", "script", "code", "chars"))
"""Arguments of tools that run commands."""
PATH_FIELDS = frozenset(
    ("path", "file_path", "filepath", "absolute_path", "dir_path", "directory", "notebook_path", "filename")
)
"""Arguments of tools that open files."""
ADDRESS_FIELDS = frozenset(("url", "uri"))
INTERPRETER = re.compile(r"(^|[/\s])(python[\d.]*|bash|sh|zsh|node|perl|ruby|php)\b")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n(.*?)(?:\n\t*\2(?=\n|$)|$)", re.DOTALL)
_PART = re.compile(r"""('[^']*'|"(?:\\.|[^"\\])*"|\\.|[^;&|\n'"\\]|['"])+""", re.DOTALL)
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SEARCH = re.compile(
    r"^\s*(\w+=\S*\s+)*(grep|egrep|rg|ag|ack|sed|awk|echo|printf|git\s+(-\S+\s+)*(grep|commit|log\s+-[SG]))\b"
)


def list_commands(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands of a tool call in OpenAI's form, each part of a pipeline or list on its own.

    A tool that reads or writes a file gives `open PATH`, a tool that loads a page `curl URL`.
    """
    arguments = (call.get("function") or {}).get("arguments") or ""
    try:
        fields = json.loads(arguments)
    except ValueError:
        fields = {"command": str(arguments)}
    for name, value in fields.items() if isinstance(fields, Mapping) else ():
        field = name.lower()
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        if field in COMMAND_FIELDS:
            yield from split_commands(text)
        elif field in PATH_FIELDS:
            yield f"open {text}"
        elif field in ADDRESS_FIELDS:
            yield f"curl {text}"


def split_commands(text: str) -> Iterator[str]:
    """Yield the parts of a line of Bash, without content that goes to a file and without words searched for."""
    bodies: list[str] = []

    def replace_body(match: re.Match[str]) -> str:
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()] + match[3]
        if INTERPRETER.search(line) and ">" not in line:
            bodies.append(match[4])
        return match[3]

    yield from (remove_words(part[0].strip()) for part in _PART.finditer(_HEREDOC.sub(replace_body, text)))
    yield from bodies


def remove_words(command: str) -> str:
    """Return a command that searches or prints without the words in quotes."""
    return _QUOTED.sub("''", command) if _SEARCH.match(command) else command
