"""Arguments for tools: drawn once from the schemas, filled with values of the present state at each call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from worlds.definitions import State, WorldTool

GENERATOR = "worlds.gates.generator"
Arguments = Mapping[str, Any]


def draw_arguments(tools: Sequence[WorldTool], calls: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return name of a tool -> so many drawn arguments, with places for values of the state.

    The same tools, number and seed give the same arguments.
    """
    request = {"schemas": {tool.name: tool.parameters for tool in tools}, "calls": calls, "seed": seed}
    done = subprocess.run(
        [sys.executable, "-m", GENERATOR], input=json.dumps(request), capture_output=True, text=True, check=True
    )
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


class StateValues:
    """Values of a state by the name of their field: what a person would put into a parameter of that name."""

    def __init__(self, state: State) -> None:
        self._named: dict[str, list[Any]] = {}
        self._texts: list[str] = []
        self._collect("", state)

    def fill(self, value: Any, name: str = "") -> Any:
        """Return drawn arguments with values of the state in their places. `name`: of the parameter they are for."""
        match value:
            case {"$known": [number, narrow]}:
                pool = (self._find_named(name) if narrow else []) or self._texts or ["x"]
                return pool[number % len(pool)]
            case dict():
                return {key: self.fill(one, key) for key, one in value.items()}
            case list():
                return [self.fill(one, name) for one in value]
        return value

    def _find_named(self, name: str) -> list[Any]:
        """Return the values of fields of a name, in the singular or the plural."""
        other = name.removesuffix("s") if name.endswith("s") else f"{name}s"
        return self._named.get(name) or self._named.get(other) or []

    def _collect(self, name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                if isinstance(one, dict | list):
                    self._texts.append(key)
                self._collect(key, one)
        elif isinstance(value, list):
            for one in value:
                self._collect(name, one)
        elif value is not None and not isinstance(value, bool):
            self._named.setdefault(name, []).append(value)
            if isinstance(value, str):
                self._texts.append(value)
