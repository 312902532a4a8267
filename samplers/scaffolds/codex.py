"""Codex, without a person: `codex exec`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from backends.sandbox.execution import ExecResult
from evaluation.instructions.guidance_files import MCP_SERVER, build_skill_files, build_tool_files
from samplers.programs.program import NODE, PROGRAM, PackageKind, Program
from samplers.scaffolds.base import (
    AGENT_FOLDER,
    PROMPT_FILE,
    AgentEnd,
    AgentSession,
    CommandScaffold,
    Places,
    list_turn_files,
)
from samplers.scaffolds.delivery import MCP_COMMAND
from samplers.scaffolds.events import find_last_event, make_failure
from taskdb.records.instructions import InstructionSource

VERSION = "0.169.0"
KEY = "MERGEMILL_AGENT_KEY"
# A login shell would read the system's profile, whose PATH has not the programs of the task's environment.
CONFIG = """
model = {model}
{system}model_provider = "gateway"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
allow_login_shell = false
check_for_update_on_startup = false

[model_providers.gateway]
name = "gateway"
base_url = {url}
env_key = "{key}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 3

[analytics]
enabled = false

[history]
persistence = "none"

[features]
unbounded_connection_retries = false
"""
SERVER = f"""
[mcp_servers.{MCP_SERVER}]
command = "{MCP_COMMAND[0]}"
args = {json.dumps(MCP_COMMAND[1:])}
required = true
startup_timeout_sec = 60
"""
"""Server of tools that the first request waits for."""


class CodexScaffold(CommandScaffold):
    """Runs Codex with all permissions and web search off. It has no limit of turns."""

    name = "codex"
    version = f"{VERSION}+plain-shell"
    places: ClassVar[Places] = {
        InstructionSource.SYSTEM: "`developer_instructions` of its configuration",
        InstructionSource.TURN: "`codex exec resume` of its last conversation",
        InstructionSource.REPOSITORY: "`AGENTS.md`",
        InstructionSource.SKILL: "the folder `skills` of `CODEX_HOME`",
        InstructionSource.MEMORY: "`AGENTS.md` of `CODEX_HOME`",
        InstructionSource.TOOL: "an MCP server",
    }
    delivers = frozenset(places)
    continues = True
    repository_file = "AGENTS.md"
    program = Program(
        name="codex",
        kind=PackageKind.NPM,
        packages=(f"@openai/codex@{VERSION}",),
        command=f"{NODE} {PROGRAM}/node_modules/.bin/codex",
    )

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return the key and the folder of its configuration."""
        return {"CODEX_HOME": AGENT_FOLDER, KEY: session.gateway.secret}

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return the configuration, the skills, the memory and the server of tools."""
        url, guidance = f"{session.gateway.container_url}/v1", session.guidance
        system = f"developer_instructions = {_quote(guidance.system)}\n" if guidance.system else ""
        content = CONFIG.format(model=_quote(session.model), system=system, url=_quote(url), key=KEY)
        files = build_skill_files(f"{AGENT_FOLDER}/skills", guidance.skills) | build_tool_files(
            AGENT_FOLDER, guidance.tools
        )
        if guidance.memory:
            files[f"{AGENT_FOLDER}/AGENTS.md"] = guidance.memory.encode()
        return {f"{AGENT_FOLDER}/config.toml": f"{content}{SERVER if guidance.tools else ''}".encode(), **files}

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        del session
        return f"{self.program.command} exec --json --skip-git-repo-check --color never - <{PROMPT_FILE}"

    def build_turn_commands(self, session: AgentSession) -> list[str]:
        """Return the commands that go on with its last conversation."""
        command = f"{self.program.command} exec resume --last --json --skip-git-repo-check"
        return [f"{command} - <{file}" for file in list_turn_files(session.guidance)]

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended, from its last event."""
        last = find_last_event(result.output, "turn.completed", "turn.failed")
        if last.get("type") != "turn.failed":
            return super().describe_end(result)
        return make_failure("model-failed", last.get("error"), result.output)


def _quote(text: str) -> str:
    """Return a text as a string of TOML: one of JSON, but with no surrogates and no bare delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
