"""A database with the example worlds and their scenarios, certified."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from core.config import Settings
from mergemill.worlds.records import encode_canonical, make_scenario_record, make_world_record
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.records.worlds import Scenario, ScenarioCertificate, World, WorldOrigin
from taskdb.store import Store
from tests.taskdb.worlds import make_scenario_certificate, make_world_certificate
from worlds.definitions import ScenarioDefinition, WorldDefinition
from worlds.examples.loading import list_example_worlds, load_example_scenarios, load_example_world


def make_settings(folder: Path) -> Settings:
    """Return settings with database and store in a folder."""
    return Settings(db=f"sqlite:///{folder}/mergemill.db", store=folder / "mergemill-store", workers=2)


def add_world(
    store: Store,
    artifacts: Artifacts,
    definition: WorldDefinition,
    scenarios: Sequence[ScenarioDefinition],
    *,
    certified: bool = True,
) -> list[Scenario]:
    """Add a world with its scenarios, and certificates as if all gates had been passed."""
    world: World = make_world_record(
        definition, artifacts, origin=WorldOrigin.WRITTEN, license_id="Apache-2.0", source="examples"
    )
    store.add(world, make_world_certificate(world))
    records = [make_scenario_record(scenario, world, artifacts) for scenario in scenarios]
    store.add(*records)
    if certified:
        store.add(*(certify(record, scenario, artifacts) for record, scenario in zip(records, scenarios, strict=True)))
    return records


def certify(record: Scenario, scenario: ScenarioDefinition, artifacts: Artifacts) -> ScenarioCertificate:
    """Return a certificate with the scenario's solution."""
    calls = [call.to_json() for call in scenario.solution or ()]
    return make_scenario_certificate(
        record,
        solution=artifacts.put(encode_canonical(calls)),
        n_calls=len(calls),
        n_tools=len({call["tool"] for call in calls}),
        n_queries=0,
    )


def make_database(folder: Path, worlds: Sequence[str] = ()) -> Settings:
    """Make a database with the example worlds of some names, all of them without any."""
    settings = make_settings(folder)
    artifacts = open_artifacts(settings.storage)
    with Store.open(settings.storage.db) as store:
        for name in worlds or list_example_worlds():
            add_world(store, artifacts, load_example_world(name), load_example_scenarios(name))
    return settings


def read_json(artifacts: Artifacts, key: str | None) -> object:
    """Return the JSON of an artifact."""
    assert key is not None
    return json.loads(artifacts.get(key))
