"""OpenCode, without a person: `opencode run`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from backends.sandbox.execution import ExecResult
from samplers.programs.program import PROGRAM, PackageKind, Program
from samplers.scaffolds.base import AGENT_FOLDER, PROMPT_FILE, SYSTEM_FILE, AgentEnd, AgentSession, CommandScaffold
from samplers.scaffolds.events import make_failure, read_events

VERSION = "1.18.33"
CONFIG_FILE = f"{AGENT_FOLDER}/opencode.json"
PROVIDER = "gateway"
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
    version = VERSION
    takes_system = True
    program = Program(
        name="opencode",
        kind=PackageKind.NPM,
        packages=(f"opencode-ai@{VERSION}",),
        command=f"{PROGRAM}/node_modules/.bin/opencode",
    )

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return its configuration and folders; the model is named in the former."""
        del session
        folders = {f"XDG_{name}_HOME": f"{AGENT_FOLDER}/{name.lower()}" for name in ("CONFIG", "DATA", "STATE")}
        return {"OPENCODE_CONFIG": CONFIG_FILE, **folders, **dict.fromkeys(SWITCHES, "1")}

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return the configuration."""
        options = {"baseURL": f"{session.gateway.container_url}/v1", "apiKey": session.gateway.secret}
        models = {session.model: {"name": session.model, "tool_call": True, "temperature": True}}
        config = {
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
            # An agent's own prompt would take the place of the program's.
            **({"instructions": [SYSTEM_FILE]} if session.system else {}),
        }
        return {CONFIG_FILE: json.dumps(config).encode()}

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        model = shlex.quote(f"{PROVIDER}/{session.model}")
        return f"{self.program.command} run --auto --format json --model {model} <{PROMPT_FILE}"

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended: an event `error` is the last where a model fails."""
        events = read_events(result.output)
        if not events or events[-1].get("type") != "error":
            return super().describe_end(result)
        return make_failure("model-failed", events[-1].get("error"), result.output)


def _list_sampling(sampling: Mapping[str, object]) -> dict[str, object]:
    """Return the sampling settings that an agent of OpenCode has."""
    return {name: sampling[name] for name in ("temperature", "top_p") if name in sampling}
