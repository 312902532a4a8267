"""mini-SWE-agent: a loop with a tool, `bash`, each command in a shell of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from backends.sandbox.execution import ExecResult
from samplers.programs.program import PYTHON, PackageKind, Program
from samplers.scaffolds.base import AGENT_FOLDER, PROMPT_FILE, AgentEnd, AgentSession, CommandScaffold, Places
from samplers.scaffolds.events import make_failure, read_events
from taskdb.records.instructions import InstructionSource

VERSION = "2.4.6"
CONFIG_FILE = f"{AGENT_FOLDER}/config.yaml"
TRAJECTORY_FILE = f"{AGENT_FOLDER}/last.traj.json"
AGENT_CLASS = "minisweagent.agents.default.DefaultAgent"
"""The loop without a person: the default loop reads new limits from a terminal."""
PRINT_END = (
    f'import json; info = json.load(open("{TRAJECTORY_FILE}"))["info"]; '
    'print(json.dumps({"exit_status": info["exit_status"]}))'
)
SYSTEM = "You are a helpful assistant that can interact with a computer."
"""System prompt of `mini.yaml`, which a configuration of one's own replaces."""
ENDS: Mapping[str, str] = {"LimitsExceeded": "turn-limit", "RepeatedFormatError": "no-action"}


class MiniSweAgentScaffold(CommandScaffold):
    """Runs the package's command with its tool-calling configuration, `mini.yaml`."""

    name = "mini-swe-agent"
    version = VERSION
    places: ClassVar[Places] = {InstructionSource.SYSTEM: "behind the `system_template` of `mini.yaml`"}
    delivers = frozenset(places)
    program = Program(
        name="mini-swe-agent",
        kind=PackageKind.PYTHON,
        packages=(f"mini-swe-agent=={VERSION}", "mcp", "orjson", "fastapi"),  # litellm imports the last three
        command=f"{PYTHON} -m minisweagent.run.mini",
        check="--help",
    )

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return where the model is; nothing is fetched or read from a terminal."""
        return {
            **super().build_env(session),
            "MSWEA_GLOBAL_CONFIG_DIR": AGENT_FOLDER,
            "MSWEA_CONFIGURED": "true",
            "MSWEA_SILENT_STARTUP": "1",
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "3",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return the configuration, which is merged over `mini.yaml`. JSON is YAML but for surrogates."""
        config: dict[str, dict[str, Any]] = {
            "agent": {"step_limit": session.limits.turns, "cost_limit": 0},
            "model": {
                "model_name": f"openai/{session.model}",
                "cost_tracking": "ignore_errors",
                "model_kwargs": {"drop_params": True, **session.sampling},
            },
        }
        if system := session.guidance.system:
            config["agent"]["system_template"] = f"{SYSTEM}\n\n{_quote_template(system)}"
        return {CONFIG_FILE: json.dumps(config, ensure_ascii=False).encode()}

    def build_command(self, session: AgentSession) -> str:
        """Return the command; its last line of output is the end that its trajectory names."""
        del session
        return (
            f'{self.program.command} -y -t "$(cat {PROMPT_FILE})" -c mini.yaml -c {CONFIG_FILE} -o {TRAJECTORY_FILE} '
            f"--agent-class {AGENT_CLASS} </dev/null && {PYTHON} -c '{PRINT_END}'"
        )

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended: by itself where its trajectory is `Submitted`."""
        end = super().describe_end(result)
        if end.reason is not None:
            return end
        events = read_events(result.output)
        status = str(events[-1].get("exit_status", "")) if events else ""
        if status == "Submitted":
            return end
        return make_failure(ENDS.get(status, "agent-failed"), f"exit status {status}", result.output)


def _quote_template(text: str) -> str:
    """Return the Jinja template that renders a text as it is."""
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}"
