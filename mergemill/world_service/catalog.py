"""Worlds that a service offers: those that ship, and folders of the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError
from worlds.definitions import ScenarioDefinition, WorldDefinition
from worlds.examples.loading import EXAMPLES_FOLDER, list_example_worlds, read_scenarios, read_world
from worlds.program.analysis import ProgramAnalysis, analyse_program


@dataclass(frozen=True, kw_only=True)
class OfferedWorld:
    """A world with its scenarios, by name."""

    definition: WorldDefinition
    analysis: ProgramAnalysis
    scenarios: Mapping[str, ScenarioDefinition]

    @property
    def name(self) -> str:
        """Name of the world."""
        return self.definition.name

    def summarise(self) -> dict[str, Any]:
        """Return what the list of worlds has of it."""
        return {
            "name": self.name,
            "environment": ENVIRONMENT,
            "tools": len(self.analysis.tools),
            "scenarios": sorted(self.scenarios),
        }

    def describe(self) -> dict[str, Any]:
        """Return what an agent may learn of it; neither states nor checks nor solutions."""
        return {
            **self.summarise(),
            "documentation": self.definition.documentation,
            "tools": [tool.to_json() for tool in self.analysis.tools],
        }


ENVIRONMENT = "synthetic"
"""Kind of environment of all that happens in worlds."""


def load_catalog(words: Sequence[str]) -> dict[str, OfferedWorld]:
    """Return name -> world.

    Args:
        words: names of worlds that ship, and folders; without any, all that ship.

    Raises:
        InputError: there is no such world or folder, two have one name, a program breaks a rule, or a world has no
            scenarios.
    """
    found: dict[str, OfferedWorld] = {}
    for word in words or list_example_worlds():
        offered = _read_offered(_find_folder(word))
        if offered.name in found:
            raise InputError(f"two worlds are named {offered.name}", advice="rename a folder")
        found[offered.name] = offered
    return found


def _find_folder(word: str) -> Path:
    if word in list_example_worlds():
        return EXAMPLES_FOLDER / word
    folder = Path(word)
    if not (folder / "program.py").is_file():
        names = ", ".join(list_example_worlds())
        raise InputError(f"there is no world {word}", advice=f"name a folder with program.py, or one of {names}")
    return folder.resolve()


def _read_offered(folder: Path) -> OfferedWorld:
    definition, scenarios = read_world(folder), read_scenarios(folder)
    analysis = analyse_program(definition.program)
    if analysis.violations:
        raise InputError(f"{definition.name}: {analysis.violations[0]}")
    if not scenarios:
        raise InputError(f"{definition.name} has no scenarios", advice=f"see {folder / 'scenarios'}")
    return OfferedWorld(
        definition=definition, analysis=analysis, scenarios={scenario.name: scenario for scenario in scenarios}
    )
