"""Qwen Code, without a person."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, ClassVar

from backends.sandbox.execution import ExecResult
from evaluation.instructions.guidance_files import build_skill_files, build_tool_files
from samplers.programs.program import NODE, PROGRAM, PackageKind, Program
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
from samplers.scaffolds.delivery import describe_server
from samplers.scaffolds.events import find_last_event, make_failure
from taskdb.records.instructions import InstructionSource

VERSION = "0.24.4"
EXIT_CODE_TURNS = 53
"""Of a run that reached its limit of turns."""
SETTINGS: Mapping[str, Any] = {
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
    "security": {"auth": {"selectedType": "openai"}},
}


class QwenCodeScaffold(CommandScaffold):
    """Runs Qwen Code with all permissions and its web tools off."""

    name = "qwen-code"
    version = VERSION
    places: ClassVar[Places] = {
        InstructionSource.SYSTEM: "its option that appends to the system prompt",
        InstructionSource.TURN: "its option that continues the last conversation",
        InstructionSource.REPOSITORY: "`QWEN.md`",
        InstructionSource.SKILL: "the folder `skills` of its configuration",
        InstructionSource.MEMORY: "`QWEN.md` of its configuration",
        InstructionSource.TOOL: "an MCP server",
    }
    delivers = frozenset(places)
    continues = True
    repository_file = "QWEN.md"
    program = Program(
        name="qwen-code",
        kind=PackageKind.NPM,
        packages=(f"@qwen-code/qwen-code@{VERSION}",),
        command=f"{NODE} {PROGRAM}/node_modules/.bin/qwen",
    )

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return where the model is, and the folder of its configuration."""
        return {**super().build_env(session), "OPENAI_MODEL": session.model, "QWEN_HOME": AGENT_FOLDER}

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return the settings, the skills, the memory and the server of tools."""
        guidance = session.guidance
        settings = {
            **SETTINGS,
            "model": {"name": session.model, "generationConfig": {"samplingParams": dict(session.sampling)}},
        }
        if guidance.tools:
            settings["mcpServers"] = describe_server(guidance, alwaysLoadTools=True)
        files = build_skill_files(f"{AGENT_FOLDER}/skills", guidance.skills) | build_tool_files(
            AGENT_FOLDER, guidance.tools
        )
        if guidance.memory:
            files[f"{AGENT_FOLDER}/QWEN.md"] = guidance.memory.encode()
        return {f"{AGENT_FOLDER}/settings.json": json.dumps(settings).encode(), **files}

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        return self._render_command(session, "", PROMPT_FILE)

    def build_turn_commands(self, session: AgentSession) -> list[str]:
        """Return the commands that go on with its last conversation, which is recorded where there are any."""
        return [self._render_command(session, "--continue ", file) for file in list_turn_files(session.guidance)]

    def _render_command(self, session: AgentSession, mode: str, file: str) -> str:
        # With the sign of equality, for a text may begin with a hyphen.
        system = f'--append-system-prompt="$(cat {SYSTEM_FILE})" ' if session.guidance.system else ""
        recording = "true" if session.guidance.turns or session.may_continue else "false"
        return (
            f"{self.program.command} {mode}--yolo --auth-type openai --model {shlex.quote(session.model)} "
            f"{system}--max-session-turns {session.limits.turns} --exclude-tools web_fetch --exclude-tools web_search "
            f"--chat-recording={recording} --output-format stream-json <{file}"
        )

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended, from its exit code and its last event."""
        last = find_last_event(result.output, "result")
        if not (result.exit_code == EXIT_CODE_TURNS or last.get("is_error")):
            return super().describe_end(result)
        reason = "turn-limit" if result.exit_code == EXIT_CODE_TURNS else "model-failed"
        return make_failure(reason, last.get("error") or last.get("result"), result.output)
