"""Delivery of guidance to programs: the files and commands that scaffolds share, whatever the name of a folder is."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from guest.agents import PROGRAM_FOLDER
from samplers.programs.program import PYTHON
from samplers.scaffolds.base import AGENT_FOLDER, SampledScaffold
from samplers.subjects.guidance import Guidance, GuidanceSkill, GuidanceTool
from taskdb.records.instructions import InstructionSource

NOT_DELIVERED = "source-not-delivered"
"""Reason of a rollout whose model is not given an instruction of its subject."""
MCP_SERVER = "project"
"""Name under which programs know the server of the guidance's tools. It is a part of the names of these tools."""
MCP_SCRIPT = f"{AGENT_FOLDER}/mcp_server.py"
MCP_TOOLS_FILE = f"{AGENT_FOLDER}/mcp_tools.json"
MCP_COMMAND = (PYTHON, MCP_SCRIPT, MCP_TOOLS_FILE)
"""Command of that server."""


def find_undelivered(scaffold: SampledScaffold, sources: Collection[InstructionSource]) -> list[InstructionSource]:
    """Return the sources that a scaffold does not give its model, in the order of precedence; none without a model."""
    missing = set(sources) - scaffold.delivers if scaffold.uses_model else set()
    return [source for source in InstructionSource if source in missing]


def describe_undelivered(scaffold: SampledScaffold, sources: Iterable[InstructionSource]) -> str:
    """Return the sources that a scaffold does not give its model, for people."""
    return f"{scaffold.name} does not deliver {', '.join(sources)}"


def add_system(guidance: Guidance, text: str) -> Guidance:
    """Return a guidance with a text before that of its system prompt."""
    return replace(guidance, system="\n\n".join(filter(None, (text, guidance.system))))


def build_skill_files(folder: str, skills: Iterable[GuidanceSkill]) -> dict[str, bytes]:
    """Return the files of skills in a folder: path -> content."""
    return {f"{folder}/{skill.name}/SKILL.md": _render_skill(skill).encode() for skill in skills}


def _render_skill(skill: GuidanceSkill) -> str:
    # A string of JSON is one of YAML, and no program takes anything in it for markup.
    fields = {"name": skill.name, "description": skill.description}
    lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())
    return f"---\n{''.join(lines)}---\n\n{skill.text.strip()}\n"


def build_tool_files(tools: Iterable[GuidanceTool]) -> dict[str, bytes]:
    """Return the files of the server of tools: path -> content; none for no tools."""
    listed = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters), "answer": tool.answer}
        for tool in tools
    ]
    if not listed:
        return {}
    script = (PROGRAM_FOLDER / "mcp_server.py").read_bytes()
    return {MCP_SCRIPT: script, MCP_TOOLS_FILE: json.dumps(listed).encode()}


def describe_server(guidance: Guidance, **options: object) -> dict[str, Mapping[str, object]]:
    """Return the server of tools in the form that most programs have it in: name -> command and arguments.

    Args:
        guidance: guidance with the tools; none give no server.
        options: settings of the program for a server, such as one that leaves no description to a search.
    """
    if not guidance.tools:
        return {}
    return {MCP_SERVER: {"command": MCP_COMMAND[0], "args": list(MCP_COMMAND[1:]), **options}}
