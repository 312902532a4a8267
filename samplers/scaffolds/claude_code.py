"""Claude Code, without a person: `claude -p`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, ClassVar

from backends.sandbox.execution import ExecResult
from evaluation.instructions.guidance_files import build_skill_files, build_tool_files
from samplers.programs.program import PROGRAM, PackageKind, Program
from samplers.scaffolds.base import (
    AGENT_FOLDER,
    PROMPT_FILE,
    REMINDER_FILE,
    SYSTEM_FILE,
    AgentEnd,
    AgentSession,
    CommandScaffold,
    Places,
    list_turn_files,
)
from samplers.scaffolds.delivery import describe_server
from samplers.scaffolds.events import find_last_event, make_failure
from taskdb.records.instructions import InstructionSource

VERSION = "2.1.330"
MODEL_VARIABLES = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)
"""Every name under which it would choose a model of its own."""
SWITCHES = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
    "IS_SANDBOX",  # root may not skip permissions elsewhere
)
SERVERS_FILE = f"{AGENT_FOLDER}/mcp.json"
REMINDER_HOOK = {"type": "command", "command": f"cat {REMINDER_FILE}"}
"""Hook whose output is added to each message of the user."""


class ClaudeCodeScaffold(CommandScaffold):
    """Runs Claude Code with all permissions and its web tools off."""

    name = "claude-code"
    version = VERSION
    places: ClassVar[Places] = {
        InstructionSource.SYSTEM: "its option that appends to the system prompt",
        InstructionSource.REMINDER: "the output of a hook `UserPromptSubmit`",
        InstructionSource.TURN: "`claude -c -p`",
        InstructionSource.REPOSITORY: "`CLAUDE.md`",
        InstructionSource.SKILL: "the folder `skills` of its configuration",
        InstructionSource.MEMORY: "`CLAUDE.md` of its configuration",
        InstructionSource.TOOL: "an MCP server",
    }
    delivers = frozenset(places)
    continues = True
    repository_file = "CLAUDE.md"
    program = Program(
        name="claude-code",
        kind=PackageKind.NPM,
        packages=(f"@anthropic-ai/claude-code@{VERSION}",),
        command=f"{PROGRAM}/node_modules/.bin/claude",
    )

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return where the model is, in Anthropic's dialect, and the folder of its configuration."""
        return {
            "ANTHROPIC_BASE_URL": session.gateway.container_url,
            "ANTHROPIC_API_KEY": session.gateway.secret,
            "CLAUDE_CONFIG_DIR": AGENT_FOLDER,
            **dict.fromkeys(MODEL_VARIABLES, session.model),
            **dict.fromkeys(SWITCHES, "1"),
        }

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return the skills, the memory, the hook and the server of tools."""
        guidance = session.guidance
        files = build_skill_files(f"{AGENT_FOLDER}/skills", guidance.skills) | build_tool_files(
            AGENT_FOLDER, guidance.tools
        )
        if guidance.memory:
            files[f"{AGENT_FOLDER}/CLAUDE.md"] = guidance.memory.encode()
        settings: dict[str, Any] = {}
        if guidance.reminder:
            settings["hooks"] = {"UserPromptSubmit": [{"hooks": [REMINDER_HOOK]}]}
        if settings:
            files[f"{AGENT_FOLDER}/settings.json"] = json.dumps(settings).encode()
        if guidance.tools:
            files[SERVERS_FILE] = json.dumps({"mcpServers": describe_server(guidance, alwaysLoad=True)}).encode()
        return files

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        return self._render_command(session, "-p", PROMPT_FILE)

    def build_turn_commands(self, session: AgentSession) -> list[str]:
        """Return the commands that go on with its last conversation."""
        return [self._render_command(session, "-c -p", file) for file in list_turn_files(session.guidance)]

    def _render_command(self, session: AgentSession, mode: str, file: str) -> str:
        system = f'--append-system-prompt "$(cat {SYSTEM_FILE})" ' if session.guidance.system else ""
        servers = f"--mcp-config {SERVERS_FILE} " if session.guidance.tools else ""
        return (
            f"{self.program.command} {mode} --output-format stream-json --verbose --dangerously-skip-permissions "
            f"{system}{servers}--disallowedTools WebFetch,WebSearch --max-turns {session.limits.turns} "
            f"--model {shlex.quote(session.model)} <{file}"
        )

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended, from its last event."""
        last = find_last_event(result.output, "result")
        if not last.get("is_error"):
            return super().describe_end(result)
        reason = "turn-limit" if last.get("subtype") == "error_max_turns" else "model-failed"
        return make_failure(reason, last.get("result") or last.get("errors") or last.get("subtype"), result.output)
