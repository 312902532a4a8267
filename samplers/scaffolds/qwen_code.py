"""Qwen Code, without a person."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from backends.sandbox.execution import ExecResult
from samplers.programs.program import NODE, PROGRAM, PackageKind, Program
from samplers.scaffolds.base import AGENT_FOLDER, PROMPT_FILE, SYSTEM_FILE, AgentEnd, AgentSession, CommandScaffold
from samplers.scaffolds.events import find_last_event, make_failure

VERSION = "0.24.4"
EXIT_CODE_TURNS = 53
"""Of a run that reached its limit of turns."""
SETTINGS = {
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
    takes_system = True
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
        """Return the settings."""
        settings = SETTINGS | {
            "model": {"name": session.model, "generationConfig": {"samplingParams": dict(session.sampling)}}
        }
        return {f"{AGENT_FOLDER}/settings.json": json.dumps(settings).encode()}

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        system = f'--append-system-prompt "$(cat {SYSTEM_FILE})" ' if session.system else ""
        return (
            f"{self.program.command} --yolo --auth-type openai --model {shlex.quote(session.model)} "
            f"{system}--max-session-turns {session.limits.turns} --exclude-tools web_fetch --exclude-tools web_search "
            f"--chat-recording=false --output-format stream-json <{PROMPT_FILE}"
        )

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended, from its exit code and its last event."""
        last = find_last_event(result.output, "result")
        if not (result.exit_code == EXIT_CODE_TURNS or last.get("is_error")):
            return super().describe_end(result)
        reason = "turn-limit" if result.exit_code == EXIT_CODE_TURNS else "model-failed"
        return make_failure(reason, last.get("error") or last.get("result"), result.output)
