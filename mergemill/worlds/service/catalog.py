"""Worlds that a service offers: certified worlds of the database, those that ship, and folders of the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.config import Settings
from core.errors import InputError
from mergemill.worlds.records import load_scenario, load_world
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.queries.worlds import (
    find_certified_worlds,
    find_matches,
    find_world_certificate,
    list_scenarios,
    resolve_world,
)
from taskdb.records.worlds import World
from taskdb.schema.database import database_exists
from taskdb.store import Store
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
        """Return the fields that the list of worlds has of it."""
        return {
            "name": self.name,
            "environment": ENVIRONMENT,
            "tools": len(self.analysis.tools),
            "scenarios": sorted(self.scenarios),
        }

    def describe(self) -> dict[str, Any]:
        """Return the facts that an agent may learn of it; neither states nor checks nor solutions."""
        return {
            **self.summarise(),
            "documentation": self.definition.documentation,
            "tools": [tool.to_json() for tool in self.analysis.tools],
        }


ENVIRONMENT = "synthetic"
"""Kind of environment of all that happens in worlds."""


def load_catalog(words: Sequence[str], settings: Settings | None = None) -> dict[str, OfferedWorld]:
    """Return name -> world.

    Args:
        words: folders, names or ids of worlds of the database, or names of worlds that ship; without any, the certified
            worlds of the database, and those that ship under other names.
        settings: name the database, if any.

    Raises:
        InputError: there is no such world, it is not certified, two have the same name, a program breaks a rule, or a
            world has no scenarios.
    """
    with ExitStack() as opened:
        database = None
        if settings is not None and database_exists(settings.storage.db):
            store = opened.enter_context(Store.open(settings.storage.db, create=False))
            database = _WorldDatabase(store, open_artifacts(settings.storage))
        worlds = [_find_world(word, database) for word in words] if words else _list_worlds(database)
    catalog: dict[str, OfferedWorld] = {}
    for world in worlds:
        if world.name in catalog:
            raise InputError(f"two worlds are named {world.name}", advice="name one of them")
        catalog[world.name] = world
    return catalog


@dataclass(frozen=True)
class _WorldDatabase:
    """Certified worlds of a task database."""

    store: Store
    artifacts: Artifacts

    def read(self, record: World) -> OfferedWorld:
        """Return a world with its certified scenarios; raise InputError where there are none."""
        if find_world_certificate(self.store, record) is None:
            raise InputError(f"{record.name} is not certified", advice=f"see mergemill worlds why {record.name}")
        scenarios = [
            load_scenario(scenario, self.artifacts) for scenario in list_scenarios(self.store, record, certified=True)
        ]
        return _make_offered(load_world(record, self.artifacts), scenarios)

    def find(self, word: str) -> OfferedWorld | None:
        """Return the world of a name or id; None where there is none."""
        if not find_matches(self.store, "world", word):
            return None
        return self.read(resolve_world(self.store, word))

    def list_worlds(self) -> list[OfferedWorld]:
        """Return the current certified worlds that have certified scenarios."""
        records = find_certified_worlds(self.store)
        return [self.read(record) for record in records if list_scenarios(self.store, record, certified=True)]


def _list_worlds(database: _WorldDatabase | None) -> list[OfferedWorld]:
    stored = database.list_worlds() if database is not None else []
    names = {record.name for record in stored}
    return [*stored, *(_read_folder(EXAMPLES_FOLDER / name) for name in list_example_worlds() if name not in names)]


def _find_world(word: str, database: _WorldDatabase | None) -> OfferedWorld:
    if (Path(word) / "program.py").is_file():
        return _read_folder(Path(word).resolve())
    if database is not None and (record := database.find(word)) is not None:
        return record
    if word in list_example_worlds():
        return _read_folder(EXAMPLES_FOLDER / word)
    names = ", ".join(list_example_worlds())
    raise InputError(
        f"there is no world {word}", advice=f"name one of `mergemill worlds list`, a folder with program.py, or {names}"
    )


def _read_folder(folder: Path) -> OfferedWorld:
    return _make_offered(read_world(folder), read_scenarios(folder))


def _make_offered(definition: WorldDefinition, scenarios: Sequence[ScenarioDefinition]) -> OfferedWorld:
    analysis = analyse_program(definition.program)
    if analysis.violations:
        raise InputError(f"{definition.name}: {analysis.violations[0]}")
    if not scenarios:
        raise InputError(f"{definition.name} has no scenarios", advice="a world is served for its scenarios")
    named = {scenario.name: scenario for scenario in scenarios}
    return OfferedWorld(definition=definition, analysis=analysis, scenarios=named)
