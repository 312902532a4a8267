"""Codex, without a person: `codex exec`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from backends.sandbox.execution import ExecResult
from samplers.programs.program import NODE, PROGRAM, PackageKind, Program
from samplers.scaffolds.base import AGENT_FOLDER, PROMPT_FILE, AgentEnd, AgentSession, CommandScaffold
from samplers.scaffolds.events import find_last_event, make_failure

VERSION = "0.169.0"
KEY = "MERGEMILL_AGENT_KEY"
CONFIG = """
model = {model}
{system}model_provider = "gateway"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
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


class CodexScaffold(CommandScaffold):
    """Runs Codex with all permissions and web search off. It has no limit of turns."""

    name = "codex"
    version = VERSION
    takes_system = True
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
        """Return the configuration."""
        url = f"{session.gateway.container_url}/v1"
        system = f"developer_instructions = {_quote(session.system)}\n" if session.system else ""
        content = CONFIG.format(model=_quote(session.model), system=system, url=_quote(url), key=KEY)
        return {f"{AGENT_FOLDER}/config.toml": content.encode()}

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        del session
        return f"{self.program.command} exec --json --skip-git-repo-check --color never - <{PROMPT_FILE}"

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended, from its last event."""
        last = find_last_event(result.output, "turn.completed", "turn.failed")
        if last.get("type") != "turn.failed":
            return super().describe_end(result)
        return make_failure("model-failed", last.get("error"), result.output)


def _quote(text: str) -> str:
    """Return a text as a string of TOML: one of JSON, but with no surrogates and no bare delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
