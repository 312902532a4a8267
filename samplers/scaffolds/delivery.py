"""Delivery of guidance to programs: the files and commands that scaffolds share, whatever the name of a folder is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from evaluation.instructions.guidance_files import MCP_SERVER, SERVER_SCRIPT, SERVER_TOOLS
from samplers.programs.program import PYTHON
from samplers.scaffolds.base import AGENT_FOLDER, SampledScaffold
from samplers.subjects.guidance import Guidance
from taskdb.records.instructions import InstructionSource

NOT_DELIVERED = "source-not-delivered"
"""Reason of a rollout whose model is not given an instruction of its subject."""
MCP_SCRIPT = f"{AGENT_FOLDER}/{SERVER_SCRIPT}"
MCP_TOOLS_FILE = f"{AGENT_FOLDER}/{SERVER_TOOLS}"
MCP_COMMAND = (PYTHON, "-I", "-S", MCP_SCRIPT, MCP_TOOLS_FILE)
"""Command of that server, which reads no module of the repository, and starts the sooner for it."""


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


def describe_server(guidance: Guidance, **options: object) -> dict[str, Mapping[str, object]]:
    """Return the server of tools in the form that most programs have it in: name -> command and arguments.

    Args:
        guidance: guidance with the tools; none give no server.
        options: settings of the program for a server, such as one that leaves no description to a search.
    """
    if not guidance.tools:
        return {}
    return {MCP_SERVER: {"command": MCP_COMMAND[0], "args": list(MCP_COMMAND[1:]), **options}}
