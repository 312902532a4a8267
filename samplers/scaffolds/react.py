"""A plain ReAct loop (Yao et al. 2022): the model thinks, runs a command, reads its output, until it submits.

The loop runs in the driver's process and its commands in the task's container, so it needs no program there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backends.llm.meter import BudgetExceededError
from samplers.scaffolds.base import AgentEnd, AgentSession, Scaffold
from samplers.scaffolds.gateway_client import GatewayError, request_completion

SYSTEM = """You are a software engineer at a terminal. Work step by step: think, run one command with the tool
`bash`, read its output, and go on. When the work is done, call the tool `submit`."""
REMINDER = "Go on with a call of the tool `bash`, or call `submit` if the work is done."
COMMAND_SECONDS = 300.0
OUTPUT_CHARS = 12_000
"""Characters of a command's output that the model reads, half of them from its beginning."""
MAX_REMINDERS = 3
TOOLS = [
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
    """Loop with the tools `bash` and `submit`."""

    name = "react"
    version = "1"
    takes_system = True

    def agent_run(self, session: AgentSession) -> AgentEnd:
        """Run the loop."""
        return _ReactLoop(session).run()


@dataclass
class _ReactLoop:
    """A conversation."""

    session: AgentSession
    messages: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> AgentEnd:
        """Run until the model submits or a limit is reached."""
        deadline = time.monotonic() + self.session.limits.seconds
        self.messages = [
            {"role": "system", "content": "\n\n".join(filter(None, (SYSTEM, self.session.system)))},
            {"role": "user", "content": self.session.subject.instruction},
        ]
        reminders = 0
        for _ in range(self.session.limits.turns):
            if time.monotonic() >= deadline:
                return AgentEnd(reason="time-limit")
            self.session.observe_state()
            answer = self._query_model(deadline)
            if isinstance(answer, AgentEnd):
                return answer
            self.messages.append(answer)
            calls = answer.get("tool_calls") or []
            if not calls:
                reminders += 1
                if reminders > MAX_REMINDERS:
                    return AgentEnd(reason="no-action", detail="the model answers without calling a tool")
                self.messages.append({"role": "user", "content": REMINDER})
            if self._execute_calls(calls, deadline):
                return AgentEnd()
        return AgentEnd(reason="turn-limit")

    def _execute_calls(self, calls: list[dict[str, Any]], deadline: float) -> bool:
        """Run the calls of an answer and append their results; return whether the model submitted."""
        has_submitted = False
        for call in calls:
            function = call.get("function") or {}
            has_submitted |= function.get("name") == "submit"
            result = "submitted" if function.get("name") == "submit" else self._execute(function, deadline)
            self.messages.append({"role": "tool", "tool_call_id": str(call.get("id", "")), "content": result})
        return has_submitted

    def _execute(self, function: Mapping[str, Any], deadline: float) -> str:
        """Return the text that the model reads as the result of a call."""
        if function.get("name") != "bash":
            return f"error: there is no tool {function.get('name')}; the tools are bash and submit"
        try:
            command = json.loads(function.get("arguments") or "{}")["command"]
        except (ValueError, KeyError, TypeError):
            return 'error: the arguments are not JSON of the form {"command": "..."}'
        seconds = max(1.0, min(COMMAND_SECONDS, deadline - time.monotonic()))
        result = self.session.shell.run(command, seconds=seconds)
        killed = f", killed: {result.killed_by}" if result.killed_by else ""
        return f"{shorten(result.output)}\n[exit code {result.exit_code}{killed}]"

    def _query_model(self, deadline: float) -> dict[str, Any] | AgentEnd:
        """Return the model's message, or why there is none."""
        body = {"model": self.session.model, "messages": self.messages, "tools": TOOLS, **self.session.sampling}
        try:
            data = request_completion(self.session.gateway, body, max(1.0, deadline - time.monotonic()))
        except BudgetExceededError:
            return AgentEnd(reason="time-limit")
        except GatewayError as error:
            return AgentEnd(reason="model-failed", detail=str(error))
        return dict(data["choices"][0]["message"])


def shorten(text: str) -> str:
    """Return a text with its middle left out where it is long."""
    if len(text) <= OUTPUT_CHARS:
        return text
    half = OUTPUT_CHARS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
