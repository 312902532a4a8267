"""A plain ReAct loop (Yao et al. 2022): the model thinks, runs a command, reads its output, until it submits.

The loop runs in the driver's process and its commands in the task's container, so it needs no program there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from backends.llm.meter import BudgetExceededError
from samplers.context.history import ConversationHistory
from samplers.context.rules import KEEP_ALL, ContextRule
from samplers.scaffolds.base import AGENT_FOLDER, AgentEnd, AgentSession, Places, Scaffold
from samplers.scaffolds.gateway_client import GatewayError, request_completion
from samplers.subjects.guidance import GuidanceSkill
from taskdb.records.instructions import InstructionSource

SYSTEM = """You are a software engineer at a terminal. Work step by step: think, run one command with the tool
`bash`, read its output, and go on. When the work is done, call the tool `submit`."""
REMINDER = "Go on with a call of the tool `bash`, or call `submit` if the work is done."
COMMAND_SECONDS = 300.0
OUTPUT_CHARS = 12_000
"""Characters of a command's output that the model reads, half of them from its beginning."""
MAX_REMINDERS = 3
MEMORY_FILE = f"{AGENT_FOLDER}/memory.md"
"""File with what is kept for the user, in the container."""
SKILLS = "Skills. Read one with the tool `skill` as soon as its subject comes up."
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a line of Bash in the repository and return its output and exit code.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "What to run."}},
                "required": ["command"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "submit",
            "description": "End: the files are graded as they are.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
]


class ReactScaffold(Scaffold):
    """Loop with the tools `bash` and `submit`.

    Args:
        context: rule that clears its history.
    """

    name = "react"
    version = "1"
    places: ClassVar[Places] = {
        InstructionSource.SYSTEM: "behind its own system prompt",
        InstructionSource.REMINDER: "a `<system-reminder>` in each message of the user",
        InstructionSource.TURN: "a further message of the same conversation",
        InstructionSource.REPOSITORY: "`AGENTS.md`, and its content in the system prompt",
        InstructionSource.SKILL: "a list in the system prompt, and a tool `skill` that returns the text",
        InstructionSource.MEMORY: "a file `memory.md`, and its content in the system prompt",
        InstructionSource.TOOL: "a function",
    }
    delivers = frozenset(places)
    continues = True
    repository_file = "AGENTS.md"
    memory_file = MEMORY_FILE

    def __init__(self, context: ContextRule = KEEP_ALL) -> None:
        self.context = context
        if context is not KEEP_ALL:  # rollouts without a rule keep the version that they had before there were rules
            self.version = f"{ReactScaffold.version}+{context.version}"

    def with_context(self, context: ContextRule) -> ReactScaffold:
        """Return the scaffold with a rule that clears its history."""
        return ReactScaffold(context)

    def agent_run(self, session: AgentSession) -> AgentEnd:
        """Run the loop."""
        session.conversation = loop = _ReactLoop(session, ConversationHistory(self.context))
        return loop.run()

    def agent_continue(self, session: AgentSession, message: str) -> AgentEnd:
        """Go on with the loop."""
        loop: _ReactLoop = session.conversation
        return loop.continue_with(message)


@dataclass
class _ReactLoop:
    """A conversation."""

    session: AgentSession
    history: ConversationHistory
    tools: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> AgentEnd:
        """Run until the model submits or a limit is reached."""
        self.history.append({"role": "system", "content": self._build_system()})
        self.tools = [*TOOLS, *self._build_tools()]
        self._send(self.session.subject.instruction)
        return self._go_on(self.session.guidance.turns)

    def continue_with(self, message: str) -> AgentEnd:
        """Send a message after the end, and run until the model submits again or a limit is reached."""
        self._send(message)
        return self._go_on(())

    def _go_on(self, later: Sequence[str]) -> AgentEnd:
        """Run with the messages of the user that are still to be sent."""
        deadline = time.monotonic() + self.session.limits.seconds
        turns = iter(later)
        reminders = 0
        for _ in range(self.session.limits.turns):
            if time.monotonic() >= deadline:
                return AgentEnd(reason="time-limit")
            self.session.observe_state()
            answer = self._query_model(deadline)
            if isinstance(answer, AgentEnd):
                return answer
            calls = answer.get("tool_calls") or []
            if not calls:
                reminders += 1
                if reminders > MAX_REMINDERS:
                    return AgentEnd(reason="no-action", detail="the model answers without calling a tool")
                self.history.append({"role": "user", "content": REMINDER})
            if self._execute_calls(calls, deadline):
                message = next(turns, None)
                if message is None:
                    return AgentEnd()
                self._send(message)
                reminders = 0
        return AgentEnd(reason="turn-limit")

    def _send(self, message: str) -> None:
        """Append a message of the user, with the reminder."""
        if reminder := self.session.guidance.reminder:
            message = f"{message.rstrip()}\n\n<system-reminder>\n{reminder}\n</system-reminder>"
        self.history.append({"role": "user", "content": message})

    def _build_system(self) -> str:
        """Return the system prompt, with the instructions that programs have in it or next to it."""
        guidance, file = self.session.guidance, ReactScaffold.repository_file
        parts = [SYSTEM, guidance.system]
        if guidance.repository:
            # As a program reads its file: with what the repository has in it already.
            content = self.session.add_repository_text(file, guidance.repository)
            parts.append(f"# {self.session.subject.workdir}/{file}\n\n{content.strip()}")
        if guidance.memory:
            parts.append(f"# {MEMORY_FILE}\n\n{guidance.memory.strip()}")
        if guidance.skills:
            listed = "\n".join(f"- {skill.name}: {skill.description}" for skill in guidance.skills)
            parts.append(f"# {SKILLS}\n\n{listed}")
        return "\n\n".join(filter(None, parts))

    def _build_tools(self) -> list[dict[str, Any]]:
        """Return the functions of the guidance."""
        guidance = self.session.guidance
        tools = [make_function(tool.name, tool.description, tool.parameters) for tool in guidance.tools]
        return [*tools, *([make_skill_tool(guidance.skills)] if guidance.skills else [])]

    def _execute_calls(self, calls: list[dict[str, Any]], deadline: float) -> bool:
        """Run the calls of an answer and append their results; return whether the model submitted."""
        has_submitted = False
        for call in calls:
            function = call.get("function") or {}
            has_submitted |= function.get("name") == "submit"
            result = "submitted" if function.get("name") == "submit" else self._execute(function, deadline)
            self.history.append({"role": "tool", "tool_call_id": str(call.get("id", "")), "content": result})
        return has_submitted

    def _execute(self, function: Mapping[str, Any], deadline: float) -> str:
        """Return the text that the model reads as the result of a call."""
        name, guidance = str(function.get("name")), self.session.guidance
        answers = {tool.name: tool.answer for tool in guidance.tools}
        if name in answers:
            return answers[name]
        names = [tool["function"]["name"] for tool in self.tools]
        if name not in names:
            return f"error: there is no tool {name}; the tools are {', '.join(names[:-1])} and {names[-1]}"
        field = "name" if name == "skill" else "command"
        try:
            value = json.loads(function.get("arguments") or "{}")[field]
        except (ValueError, KeyError, TypeError):
            return f'error: the arguments are not JSON of the form {{"{field}": "..."}}'
        if name == "skill":
            texts = {skill.name: skill.text for skill in guidance.skills}
            return texts.get(value, f"error: there is no skill {value}")
        return self._run_command(value, deadline)

    def _run_command(self, command: str, deadline: float) -> str:
        seconds = max(1.0, min(COMMAND_SECONDS, deadline - time.monotonic()))
        result = self.session.shell.run(command, seconds=seconds)
        killed = f", killed: {result.killed_by}" if result.killed_by else ""
        return f"{shorten(result.output)}\n[exit code {result.exit_code}{killed}]"

    def _query_model(self, deadline: float) -> dict[str, Any] | AgentEnd:
        """Return the model's message, or why there is none."""
        body = {
            "model": self.session.model,
            "messages": self.history.prepare(),
            "tools": self.tools,
            **self.session.sampling,
        }
        try:
            data = request_completion(self.session.gateway, body, max(1.0, deadline - time.monotonic()))
        except BudgetExceededError:
            return AgentEnd(reason="time-limit")
        except GatewayError as error:
            return AgentEnd(reason="model-failed", detail=str(error))
        return self.history.append_answer(data)


def make_function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the form of chat completions."""
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": dict(parameters)},
    }


def make_skill_tool(skills: Sequence[GuidanceSkill]) -> dict[str, Any]:
    """Return the tool that reads skills."""
    names = {"type": "string", "enum": [skill.name for skill in skills], "description": "Name of the skill."}
    parameters = {"type": "object", "properties": {"name": names}, "required": ["name"]}
    return make_function("skill", "Return the text of a skill.", parameters)


def shorten(text: str) -> str:
    """Return a text with its middle left out where it is long."""
    if len(text) <= OUTPUT_CHARS:
        return text
    half = OUTPUT_CHARS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
