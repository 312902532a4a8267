"""Arguments for tools: drawn once from the schemas, filled with values of the present state at each call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from worlds.definitions import State, WorldTool

GENERATOR = "worlds.gates.generator"
Arguments = Mapping[str, Any]


def draw_arguments(tools: Sequence[WorldTool], calls: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return name of a tool -> so many drawn arguments, with places for values of the state.

    The same tools, number and seed give the same arguments.
    """
    request = {"schemas": {tool.name: tool.parameters for tool in tools}, "calls": calls, "seed": seed}
    arguments: dict[str, list[dict[str, Any]]] = json.loads(run_generator(json.dumps(request)))
    return arguments


def run_generator(request: str) -> str:
    """Return the output of the generator for an input."""
    command = [sys.executable, "-m", GENERATOR]
    return subprocess.run(command, input=request, capture_output=True, text=True, check=True).stdout


class StateValues:
    """Values of a state by the name of their field.

    The values that a person would put into a parameter of that name.
    """

    def __init__(self, state: State) -> None:
        self._named: dict[str, list[Any]] = {}
        self._texts: list[str] = []
        self._numbers: list[float] = []
        self._collect("", state)

    def fill(self, value: Any, name: str = "") -> Any:
        """Return drawn arguments with values of the state in their places. `name`: of the parameter they are for."""
        match value:
            case {"$known": [number, kind, narrow, shift]}:
                pool = self._list_values(name if narrow else "", is_text=kind == "string")
                return _shift(pool[number % len(pool)], shift)
            case dict():
                return {key: self.fill(item, key) for key, item in value.items()}
            case list():
                return [self.fill(item, name) for item in value]
        return value

    def _list_values(self, name: str, *, is_text: bool) -> list[Any]:
        """Return the values of fields of a name, in the singular or the plural; where there are none, all values."""
        other = name.removesuffix("s") if name.endswith("s") else f"{name}s"
        all_values = self._texts if is_text else self._numbers
        for pool in (self._named.get(name, []), self._named.get(other, []), all_values):
            if values := [value for value in pool if isinstance(value, str) is is_text]:
                return values
        return ["x"] if is_text else [1]

    def _collect(self, name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in sorted(value.items()):  # what is drawn does not depend on the order of a dict
                if isinstance(item, dict | list):
                    self._texts.append(key)
                self._collect(key, item)
        elif isinstance(value, list):
            for item in value:
                self._collect(name, item)
        elif value is not None and not isinstance(value, bool):
            self._named.setdefault(name, []).append(value)
            (self._texts if isinstance(value, str) else self._numbers).append(value)


def _shift(value: Any, shift: int) -> Any:
    """Return a value near another, which is kept where `shift` is 0: a later day, a larger number, a new text."""
    if not shift:
        return value
    if not isinstance(value, str):
        return value + shift
    try:
        return (date.fromisoformat(value) + timedelta(days=shift)).isoformat()
    except ValueError:
        return f"{shift}{value}"
