"""The worlds written by hand, cut into the answers that a model would give: class, operations, methods."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cache

from worlds.definitions import ScenarioDefinition, WorldDefinition
from worlds.documentation import split_documentation
from worlds.examples.loading import load_example_scenarios, load_example_world
from worlds.program.analysis import analyse_program
from worlds.program.tree import parse_program


@dataclass(frozen=True, kw_only=True)
class CutWorld:
    """A world in parts. `methods`: name of a tool -> its source, not indented."""

    world: WorldDefinition
    scenarios: tuple[ScenarioDefinition, ...]
    class_source: str
    methods: dict[str, str]
    kinds: dict[str, str]

    @property
    def introduction(self) -> str:
        return split_documentation(self.world.documentation)[0]

    @property
    def rules(self) -> list[str]:
        return [
            " ".join(rule.split()) for rule in f"\n{split_documentation(self.world.documentation)[1]}".split("\n- ")[1:]
        ]


@cache
def cut_world(name: str) -> CutWorld:
    world = load_example_world(name)
    tree = parse_program(world.program)
    lines = world.program.splitlines()
    methods = {}
    for tool, node in tree.tools.items():
        start, end = node.lineno - 1, node.end_lineno or 0
        methods[tool] = textwrap.dedent("\n".join(world.program.splitlines()[start:end])) + "\n"
        lines[start:end] = [""] * (end - start)
    class_source = "\n".join(lines) + "\n"
    analysis = analyse_program(world.program)
    return CutWorld(
        world=world,
        scenarios=tuple(load_example_scenarios(name)),
        class_source=class_source,
        methods=methods,
        kinds={tool: kind.value for tool, kind in analysis.kinds.items()},
    )
