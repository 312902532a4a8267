"""OpenHands: the default agent of its SDK, by a script of ours in the container."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from backends.sandbox.execution import ExecResult
from evaluation.instructions.guidance_files import build_skill_files, build_tool_files
from guest.agents import PROGRAM_FOLDER
from samplers.programs.program import PYTHON, PackageKind, Program
from samplers.scaffolds.base import AGENT_FOLDER, PROMPT_FILE, AgentEnd, AgentSession, CommandScaffold, Places
from samplers.scaffolds.delivery import describe_server
from samplers.scaffolds.events import make_failure, read_events
from taskdb.records.instructions import InstructionSource

VERSION = "1.58.0"
SCRIPT = f"{AGENT_FOLDER}/openhands_run.py"
SETTINGS_FILE = f"{AGENT_FOLDER}/settings.json"
SKILL_FOLDER = f"{AGENT_FOLDER}/skills"
INPUTRC_FILE = f"{AGENT_FOLDER}/inputrc"
INPUTRC = "set disable-completion on\nset enable-bracketed-paste off\n"
"""Settings of the shell that commands are typed into: a tab in a command is not a wish for completion."""
SAMPLING = ("temperature", "top_p", "top_k", "seed")
"""Sampling settings that the SDK has under the same name."""


class OpenHandsScaffold(CommandScaffold):
    """Runs the agent with terminal, file editor and task list, and without a browser."""

    name = "openhands"
    version = VERSION
    places: ClassVar[Places] = {
        InstructionSource.SYSTEM: "`system_message_suffix` of the agent's context",
        InstructionSource.REMINDER: "`user_message_suffix` of the agent's context",
        InstructionSource.TURN: "a further message of the same conversation",
        InstructionSource.REPOSITORY: "`AGENTS.md`",
        InstructionSource.SKILL: "files `SKILL.md`, skills of the agent's context",
        InstructionSource.TOOL: "an MCP server",
    }
    delivers = frozenset(places)
    repository_file = "AGENTS.md"
    program = Program(
        name="openhands",
        kind=PackageKind.PYTHON,
        packages=(f"openhands-sdk=={VERSION}", f"openhands-tools=={VERSION}"),
        command=f"env LITELLM_LOCAL_MODEL_COST_MAP=True OPENHANDS_SUPPRESS_BANNER=1 {PYTHON}",
        check="-c 'import openhands.sdk, openhands.tools.preset.default'",
    )

    def build_env(self, session: AgentSession) -> Mapping[str, str]:
        """Return where the model is, and the settings of the shell."""
        return {**super().build_env(session), "INPUTRC": INPUTRC_FILE}

    def build_files(self, session: AgentSession) -> Mapping[str, bytes]:
        """Return the script and its settings, those of the shell, the skills and the server of tools."""
        guidance = session.guidance
        llm = {
            "model": f"openai/{session.model}",
            "base_url": f"{session.gateway.container_url}/v1",
            "num_retries": 2,
            **{name: session.sampling[name] for name in SAMPLING if name in session.sampling},
        }
        settings = {
            "llm": llm,
            "turns": session.limits.turns,
            "system": guidance.system,
            "reminder": guidance.reminder,
            "messages": guidance.turns,
            "reads_repository": bool(guidance.repository),
            "skills": SKILL_FOLDER if guidance.skills else "",
            "servers": describe_server(guidance),
        }
        return {
            SCRIPT: (PROGRAM_FOLDER / "openhands_run.py").read_bytes(),
            SETTINGS_FILE: json.dumps(settings).encode(),
            INPUTRC_FILE: INPUTRC.encode(),
            **build_skill_files(SKILL_FOLDER, guidance.skills),
            **build_tool_files(AGENT_FOLDER, guidance.tools),
        }

    def build_command(self, session: AgentSession) -> str:
        """Return the command."""
        del session
        return f"{self.program.command} {SCRIPT} {PROMPT_FILE} {SETTINGS_FILE} </dev/null"

    def describe_end(self, result: ExecResult) -> AgentEnd:
        """Return how it ended: by itself where the conversation is `finished`."""
        end = super().describe_end(result)
        events = read_events(result.output)
        if end.reason is not None or not events or events[-1].get("status") == "finished":
            return end
        errors = events[-1].get("errors") or [{"code": events[-1].get("status"), "detail": ""}]
        code, detail = str(errors[0]["code"]), str(errors[0]["detail"])
        reason = "turn-limit" if code == "MaxIterationsReached" else "agent-failed"
        return make_failure(reason, f"{code}: {detail}" if detail else code, result.output)
