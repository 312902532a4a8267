"""A scripted model that works through a list of shell commands with whichever shell tool an agent's program offers.

In a test::

    player = ShellPlayer({"title of the task": ["sed -i s/a/b/ x.py", "pytest -q"]})
    with ScriptedModel(player) as model:
        ...

One command is played in each turn, in the place of the conversation that the commands before have; then the model
ends, in the way that the program expects. A request without a shell tool, such as one for a title, gets a short text.

As a process, with commands from a file, `{"regular expression": ["command", ..]}`::

    MERGEMILL_COMMANDS=commands.json python -m tests.samplers.scripted_model --answer tests.samplers.shell_player:answer
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.samplers.scripted_model import Call, ModelRequest, Turn

SHELL_TOOLS = frozenset(
    ("bash", "shell", "exec_command", "local_shell", "execute_bash", "terminal", "run_shell_command", "shell_command")
)
COMMAND_FIELDS = ("command", "cmd", "script")
MINI_END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What mini-SWE-agent runs as its last command."""
END_TOOLS = ("submit", "finish")
END = "The task is done."


class ShellPlayer:
    """Answers of a model.

    Args:
        commands: of the conversations in which a regular expression is found; the first that fits.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        self.commands = commands

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next command, or the end."""
        tool = find_shell_tool(request.body)
        if tool is None:
            return Turn(text="A short text")
        place = count_calls(request.body, tool["name"])
        commands = self.find_commands(request)
        if place < len(commands):
            return Turn(text=f"Step {place + 1}.", calls=(make_call(tool, commands[place]),))
        return self.end(request, tool)

    def find_commands(self, request: ModelRequest) -> Sequence[str]:
        """Return the commands of a conversation; none where nothing fits."""
        text = read_prompt(request.body)
        return next((commands for match, commands in self.commands.items() if re.search(match, text)), ())

    def end(self, request: ModelRequest, tool: Mapping[str, Any]) -> Turn:
        """Return the answer that ends the program."""
        if MINI_END in request.raw.decode():
            return Turn(text=END, calls=(make_call(tool, MINI_END),))
        name = next((name for name in END_TOOLS if name in request.tools), None)
        return Turn(calls=(Call(name, {"message": END} if name == "finish" else {}),)) if name else Turn(text=END)


def list_tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return name and schema of the tools that a request offers, in either dialect."""
    tools = [tool.get("function", tool) for tool in body.get("tools") or ()]
    return [
        {"name": tool.get("name", ""), "schema": tool.get("parameters") or tool.get("input_schema") or {}}
        for tool in tools
    ]


def find_shell_tool(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the tool that runs commands."""
    return next((tool for tool in list_tools(body) if tool["name"].lower() in SHELL_TOOLS), None)


def make_call(tool: Mapping[str, Any], command: str) -> Call:
    """Return a call that runs a command, with all that the tool's schema requires."""
    properties: Mapping[str, Any] = tool["schema"].get("properties", {})
    field = next((name for name in COMMAND_FIELDS if name in properties), "command")
    is_list = properties.get(field, {}).get("type") == "array"
    arguments: dict[str, Any] = {field: ["bash", "-c", command] if is_list else command}
    fillers: Mapping[str, Any] = {"string": "Run a command", "boolean": False, "integer": 60, "number": 60}
    for name in tool["schema"].get("required", ()):
        given = properties.get(name, {})
        filler = given["enum"][0] if given.get("enum") else fillers.get(given.get("type", ""), "Run a command")
        arguments.setdefault(name, filler)
    return Call(tool["name"], arguments)


def count_calls(body: Mapping[str, Any], name: str) -> int:
    """Return the number of calls of a tool in a conversation."""
    n_calls = 0
    for message in body.get("messages", ()):
        if message.get("role") != "assistant":
            continue
        n_calls += sum(call["function"]["name"] == name for call in message.get("tool_calls") or ())
        content = message.get("content")
        if isinstance(content, list):
            n_calls += sum(part.get("type") == "tool_use" and part.get("name") == name for part in content)
    return n_calls


def read_prompt(body: Mapping[str, Any]) -> str:
    """Return the text of all messages that are not the model's."""
    return json.dumps(
        [message.get("content") for message in body.get("messages", ()) if message.get("role") != "assistant"],
        ensure_ascii=False,
    )


@cache
def _read_player(path: str) -> ShellPlayer:
    return ShellPlayer(json.loads(Path(path).read_text()))


def answer(request: ModelRequest) -> Turn:
    """Answer with the commands of the file that MERGEMILL_COMMANDS names."""
    return _read_player(os.environ["MERGEMILL_COMMANDS"])(request)
