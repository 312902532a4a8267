"""Features of worlds, tools and scenarios by which their variety is measured: sets of words, by name of a measure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from worlds.definitions import Call, WorldDefinition, WorldTool
from worlds.program.analysis import ProgramAnalysis, analyse_program
from worlds.program.guards import list_rule_kinds
from worlds.program.tree import ProgramError, ProgramTree, parse_program

MEASURES: Mapping[str, str] = {
    "tools": "names of tools",
    "verbs": "first words of their names",
    "shapes": "kinds and parameter types of tools",
    "attributes": "attributes of the state",
    "rules": "forms of the conditions under which a tool refuses",
    "sequences": "verbs of two calls in a row, in known solutions",
}
"""Measure -> features that it counts."""
Features = dict[str, set[str]]
_FIRST_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


class WorldFeatures:
    """Reads the features of a world.

    Args:
        world: the world; a part of a program that breaks a rule has no features.
    """

    def __init__(self, world: WorldDefinition) -> None:
        self._analysis: ProgramAnalysis = analyse_program(world.program)
        self._tools = {tool.name: tool for tool in self._analysis.tools}
        self._tree: ProgramTree | None = None
        if self._tools:
            self._tree = _parse(world.program)

    @property
    def tool_names(self) -> list[str]:
        """Names of the tools, in the order of the program."""
        return list(self._tools)

    def describe_tool(self, name: str) -> Features:
        """Return the features of a tool; those of its name alone where the world has no such tool."""
        features: Features = {"tools": {name}, "verbs": {find_verb(name)}}
        if name in self._tools:
            usage = self._analysis.usage.methods[name]
            features["shapes"] = {describe_shape(self._tools[name], self._analysis.kinds[name])}
            features["attributes"] = {*usage.reads, *usage.writes}
        if name in self._tools and self._tree is not None:
            features["rules"] = list_rule_kinds(self._tree, name)
        return features

    def describe_solution(self, calls: Sequence[Call]) -> Features:
        """Return the features of a scenario: those of the tools in its solution, and the sequences of its calls."""
        names = [call.tool for call in calls]
        pairs = {f"{find_verb(first)} {find_verb(second)}" for first, second in pairwise(names)}
        return unite_features([*map(self.describe_tool, dict.fromkeys(names)), {"sequences": pairs}])

    def describe_world(self, solutions: Iterable[Sequence[Call]]) -> Features:
        """Return the features of all tools and attributes, and the sequences of the known solutions of scenarios."""
        sequences = [{"sequences": self.describe_solution(calls)["sequences"]} for calls in solutions]
        state: Features = {"attributes": set(self._analysis.usage.attributes)}
        return unite_features([*map(self.describe_tool, self._tools), state, *sequences])


def unite_features(parts: Iterable[Features]) -> Features:
    """Return the features of all parts together."""
    united: Features = {}
    for part in parts:
        for measure, features in part.items():
            united.setdefault(measure, set()).update(features)
    return united


def find_verb(name: str) -> str:
    """Return the first word of a tool's name, in lower case: `lend` of `lend_book` and `lendBook`."""
    match = _FIRST_WORD.search(name)
    return match.group().lower() if match else name


def describe_shape(tool: WorldTool, kind: str) -> str:
    """Return the kind of a tool and the sorted types of its parameters, such as `change(integer?, string)`."""
    required = tool.parameters.get("required", ())
    types = sorted(
        f"{_name_type(schema)}{'' if name in required else '?'}"
        for name, schema in tool.parameters.get("properties", {}).items()
    )
    return f"{kind}({', '.join(types)})"


def _name_type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "choice"
    types = schema.get("type", "any")
    return types if isinstance(types, str) else "|".join(sorted(types))


def _parse(program: str) -> ProgramTree | None:
    try:
        return parse_program(program)
    except ProgramError:
        return None
