"""OpenCode, without a person: `opencode run`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, ClassVar

from backends.sandbox.execution import ExecResult
from evaluation.instructions.guidance_files import MCP_SERVER, build_skill_files, build_tool_files
from samplers.programs.program import PROGRAM, PackageKind, Program
from samplers.scaffolds.base import (
    AGENT_FOLDER,
    PROMPT_FILE,
    SYSTEM_FILE,
    AgentEnd,
    AgentSession,
    CommandScaffold,
    Places,
    list_turn_files,
)
from samplers.scaffolds.delivery import MCP_COMMAND
from samplers.scaffolds.events import make_failure, read_events
from taskdb.records.instructions import InstructionSource

VERSION = "1.18.33"
CONFIG_FILE = f"{AGENT_FOLDER}/opencode.json"
USER_FOLDER = f"{AGENT_FOLDER}/config/opencode"
"""Folder of the user's configuration."""
PROVIDER = "gateway"
LINK_RIPGREP = (
    "mkdir -p ~/.cache/opencode/bin && "
    f"ln -sf {PROGRAM}/node_modules/@vscode/ripgrep-linux-*/bin/rg ~/.cache/opencode/bin/rg && "
)
"""Bash that puts ripgrep where it would be downloaded to: the tools for searching, and that for skills, run it."""
DENIED = ("webfetch", "websearch", "codesearch", "question")
SWITCHES = (
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
)


class OpenCodeScaffold(CommandScaffold):
    """Runs OpenCode with all permissions, and without the tools for the web and for questions."""

    name = "opencode"
    version = f"{VERSION}+ripgrep"
    places: ClassVar[Places] = {
        InstructionSource.SYSTEM: "a file of `instructions`, which it adds to its system prompt",
        InstructionSource.TURN: "`opencode run -c`",
        InstructionSource.REPOSITORY: "`AGENTS.md`",
        InstructionSource.SKILL: "the folder `skills` of the user's configuration",
        InstructionSource.MEMORY: "`AGENTS.md` of the user's configuration",
        InstructionSource.TOOL: "an MCP server",
    }
    delivers = frozenset(places)
    continues = True
    repository_file = "AGENTS.md"
    program = Program(
        name="opencode",
        kind=PackageKind.NPM,
        packages=(f"opencode-ai@{VERSION}", "@vscode/ripgrep@1.18.0"),
        command=f"{PROGRAM}/node_modules/.bin/opencode",
    )

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return its configuration and folders; the model is named in the former."""
        del session
        folders = {f"XDG_{name}_HOME": f"{AGENT_FOLDER}/{name.lower()}" for name in ("CONFIG", "DATA", "STATE")}
        return {"OPENCODE_CONFIG": CONFIG_FILE, **folders, **dict.fromkeys(SWITCHES, "1")}

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return the configuration, the skills, the memory and the server of tools."""
        guidance = session.guidance
        options = {"baseURL": f"{session.gateway.container_url}/v1", "apiKey": session.gateway.secret}
        models = {session.model: {"name": session.model, "tool_call": True, "temperature": True}}
        config: dict[str, Any] = {
            "model": f"{PROVIDER}/{session.model}",
            "small_model": f"{PROVIDER}/{session.model}",
            "provider": {
                PROVIDER: {"npm": "@ai-sdk/openai-compatible", "name": PROVIDER, "options": options, "models": models}
            },
            "permission": {"*": "allow", **dict.fromkeys(DENIED, "deny")},
            "agent": {"build": {"steps": session.limits.turns, **_list_sampling(session.sampling)}},
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
        }
        if guidance.system:  # an agent's own prompt would take the place of the program's
            config["instructions"] = [SYSTEM_FILE]
        if guidance.tools:
            config["mcp"] = {MCP_SERVER: {"type": "local", "command": list(MCP_COMMAND), "enabled": True}}
        files = build_skill_files(f"{USER_FOLDER}/skills", guidance.skills) | build_tool_files(
            AGENT_FOLDER, guidance.tools
        )
        if guidance.memory:
            files[f"{USER_FOLDER}/AGENTS.md"] = guidance.memory.encode()
        return {CONFIG_FILE: json.dumps(config).encode(), **files}

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        return self._render_command(session, "run", PROMPT_FILE)

    def build_turn_commands(self, session: AgentSession) -> list[str]:
        """Return the commands that go on with its last conversation."""
        return [self._render_command(session, "run -c", file) for file in list_turn_files(session.guidance)]

    def _render_command(self, session: AgentSession, mode: str, file: str) -> str:
        model = shlex.quote(f"{PROVIDER}/{session.model}")
        return f"{LINK_RIPGREP}{self.program.command} {mode} --auto --format json --model {model} <{file}"

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended: an event `error` is the last where a model fails."""
        events = read_events(result.output)
        if not events or events[-1].get("type") != "error":
            return super().describe_end(result)
        return make_failure("model-failed", events[-1].get("error"), result.output)


def _list_sampling(sampling: Mapping[str, object]) -> dict[str, object]:
    """Return the sampling settings that an agent of OpenCode has."""
    return {name: sampling[name] for name in ("temperature", "top_p") if name in sampling}
