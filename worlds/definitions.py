"""Objects that the stage works on: a world, a scenario in it, checks, calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

State = dict[str, Any]
"""Name of an attribute of the world's class -> JSON value."""


@dataclass(frozen=True, kw_only=True)
class WorldTool:
    """Tool of a world as models see it. `parameters` is the JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the tool as `tools.json` has it."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


@dataclass(frozen=True, kw_only=True)
class WorldDefinition:
    """A world: program, documentation, initial states.

    `documentation` is the text that an agent may read: an introduction and the rules. `states` is name -> initial
        state.
    """

    name: str
    program: str
    documentation: str
    states: Mapping[str, State]


@dataclass(frozen=True, kw_only=True)
class Call:
    """Call of a tool.

    An argument `{"$result": [N, KEY, ...]}` stands for the value that the call number N (from 0) returned under these
    keys.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the call as `solution.json` has it."""
        return {"tool": self.tool, "arguments": dict(self.arguments)}


@dataclass(frozen=True, kw_only=True)
class Check:
    """An item of a scenario's checklist.

    `function` is the name of the function that `source` defines: it takes `final_state`, `initial_state` or both and
    returns True where the item is fulfilled.
    """

    item: str
    function: str
    source: str


@dataclass(frozen=True, kw_only=True)
class ScenarioDefinition:
    """A task in a world: initial state, text for the agent, checks of the final state, and a solution if known."""

    name: str
    world: str
    state: State
    task: str
    checks: tuple[Check, ...]
    solution: tuple[Call, ...] | None = None
