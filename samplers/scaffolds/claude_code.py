"""Claude Code, without a person: `claude -p`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from backends.sandbox.execution import ExecResult
from samplers.programs.program import PROGRAM, PackageKind, Program
from samplers.scaffolds.base import AGENT_FOLDER, PROMPT_FILE, SYSTEM_FILE, AgentEnd, AgentSession, CommandScaffold
from samplers.scaffolds.events import find_last_event, make_failure

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


class ClaudeCodeScaffold(CommandScaffold):
    """Runs Claude Code with all permissions and its web tools off."""

    name = "claude-code"
    version = VERSION
    takes_system = True
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

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        system = f'--append-system-prompt "$(cat {SYSTEM_FILE})" ' if session.system else ""
        return (
            f"{self.program.command} -p --output-format stream-json --verbose --dangerously-skip-permissions "
            f"{system}--disallowedTools WebFetch,WebSearch --max-turns {session.limits.turns} "
            f"--model {shlex.quote(session.model)} <{PROMPT_FILE}"
        )

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended, from its last event."""
        last = find_last_event(result.output, "result")
        if not last.get("is_error"):
            return super().describe_end(result)
        reason = "turn-limit" if last.get("subtype") == "error_max_turns" else "model-failed"
        return make_failure(reason, last.get("result") or last.get("errors") or last.get("subtype"), result.output)
