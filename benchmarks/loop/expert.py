"""An expert that knows the families of bugs, as a model server: it looks, edits and submits.

It sees what a model sees, through the gateway and the scaffold, so that its trajectories have the form of any other.
"""

from __future__ import annotations

import re
from typing import Any

from benchmarks.loop.repository import FAMILIES, PACKAGE, BugFamily
from tests.samplers.scripted_model import Call, ModelRequest, Turn

PATH = re.compile(rf"Correct ({PACKAGE}/\w+\.py)")


def answer_as_expert(request: ModelRequest) -> Turn:
    """Return the expert's answer to a conversation."""
    messages = request.body["messages"]
    statement = str(messages[1]["content"])
    match = PATH.search(statement)
    if match is None:
        return Turn(text="There is no module to correct.", calls=(Call("submit"),))
    path = match.group(1)
    if request.place == 0:
        return _run("I read the module.", f"cat {path}")
    if request.place == 1:
        family = choose_family(statement, _read_results(messages))
        return _run(f"It must be `{family.new}`.", f"sed -i 's/{family.old}/{family.new}/' {path}")
    return Turn(text="The work is done.", calls=(Call("submit"),))


def choose_family(statement: str, module: str) -> BugFamily:
    """Return the family of a statement and a module's text.

    Raises:
        StopIteration: there is none.
    """
    return next(family for family in FAMILIES if family.complaint in statement and family.old in module)


def _run(thought: str, command: str) -> Turn:
    return Turn(text=thought, calls=(Call("bash", {"command": command}),))


def _read_results(messages: list[dict[str, Any]]) -> str:
    return "\n".join(str(message["content"]) for message in messages if message["role"] == "tool")
