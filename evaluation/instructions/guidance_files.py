"""Files by which agents are given skills and tools: a `SKILL.md` for each skill, and a server of fixed answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from guest.agents import PROGRAM_FOLDER

MCP_SERVER = "project"
"""Name under which programs know the server of the tools. It is a part of the names of these tools."""
SERVER_SCRIPT = "mcp_server.py"
SERVER_TOOLS = "mcp_tools.json"


class NamedText(Protocol):
    """A skill."""

    @property
    def name(self) -> str:
        """Letters, digits and hyphens."""

    @property
    def description(self) -> str:
        """A single line."""

    @property
    def text(self) -> str:
        """Text in Markdown."""


class AnsweringTool(Protocol):
    """A tool of the server."""

    @property
    def name(self) -> str:
        """Name without that of the server."""

    @property
    def description(self) -> str:
        """Description that the model is given."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of its arguments, an object."""

    @property
    def answer(self) -> str:
        """Text that each call returns."""


def build_skill_files(folder: str, skills: Iterable[NamedText]) -> dict[str, bytes]:
    """Return the files of skills in a folder: path -> content."""
    return {f"{folder}/{skill.name}/SKILL.md": _render_skill(skill).encode() for skill in skills}


def _render_skill(skill: NamedText) -> str:
    # A string of JSON is one of YAML, and no program takes anything in it for markup.
    fields = {"name": skill.name, "description": skill.description}
    lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())
    return f"---\n{''.join(lines)}---\n\n{skill.text.strip()}\n"


def build_tool_files(folder: str, tools: Iterable[AnsweringTool]) -> dict[str, bytes]:
    """Return the files of the server of tools in a folder: path -> content; none for no tools."""
    listed = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters), "answer": tool.answer}
        for tool in tools
    ]
    if not listed:
        return {}
    script = (PROGRAM_FOLDER / SERVER_SCRIPT).read_bytes()
    return {f"{folder}/{SERVER_SCRIPT}": script, f"{folder}/{SERVER_TOOLS}": json.dumps(listed).encode()}
