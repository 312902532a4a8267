"""Worlds that an export is given: those that ship, folders of their form, those of the database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError
from core.version import read_version
from mergemill.worlds.bundles.rollouts import read_rollouts
from mergemill.worlds.records import NO_ASSERTION, load_scenario, load_world
from taskdb.artifacts import Artifacts, open_artifacts
from worlds.bundles.contents import Certification, WorldContents, WorldConversation
from worlds.definitions import Call, ScenarioDefinition
from worlds.examples.loading import (
    list_example_worlds,
    load_example_scenarios,
    load_example_world,
    read_scenarios,
    read_world,
)

if TYPE_CHECKING:
    from core.settings.storage import StorageSettings
    from taskdb.records.worlds import Scenario, World
    from taskdb.store import Store

EXAMPLE_LICENSE = "Apache-2.0"
WRITTEN = "written"
ASSESSMENT = "assessment by tester and checker"


@dataclass(frozen=True, kw_only=True)
class WorldSource:
    """A world that is to be exported. `needs_gates`: whether it is certified by running the gates now."""

    contents: WorldContents
    needs_gates: bool = False

    @property
    def name(self) -> str:
        """Name of the world."""
        return self.contents.definition.name


def find_sources(words: Sequence[str], storage: StorageSettings, *, with_uncertified: bool) -> list[WorldSource]:
    """Return the worlds of the words, each once; without words the certified ones of the database.

    Args:
        words: names of worlds that ship, folders of their form, and names or ids of worlds of the database.
        storage: place of the database.
        with_uncertified: whether worlds and scenarios without a certificate count, too.

    Raises:
        InputError: there is no such world, two have the same name, or the database has none that is certified.
    """
    sources: list[WorldSource] = []
    stored: list[str] = []
    for word in words:
        if word in list_example_worlds():
            sources.append(_load_example(word))
        elif (Path(word) / "program.py").is_file():
            sources.append(_read_folder(Path(word)))
        else:
            stored.append(word)
    if stored or not words:
        sources += _load_stored(stored, storage, with_uncertified=with_uncertified)
    names = [source.name for source in sources]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"two worlds are named {twice[0]}", advice="export them one after the other")
    return sources


def _load_example(name: str) -> WorldSource:
    contents = WorldContents(
        definition=load_example_world(name),
        scenarios=tuple(load_example_scenarios(name)),
        license=EXAMPLE_LICENSE,
        origin=WRITTEN,
        certification=Certification(by=f"the tests of mergemill {read_version()}", gates={}),
    )
    return WorldSource(contents=contents)


def _read_folder(folder: Path) -> WorldSource:
    path = folder.resolve()
    contents = WorldContents(
        definition=read_world(path),
        scenarios=tuple(read_scenarios(path)),
        license=NO_ASSERTION,
        origin=WRITTEN,
    )
    return WorldSource(contents=contents, needs_gates=True)


@contextmanager
def _open_store(storage: StorageSettings, words: Sequence[str]) -> Iterator[Store]:
    from taskdb.store import Store  # noqa: PLC0415 - worlds that ship need no database

    examples = ", ".join(list_example_worlds())
    try:
        store = Store.open(storage.db, create=False)
    except InputError as error:
        what = f"there is no world {words[0]}" if words else "there is no database of worlds"
        advice = f"name a folder with program.py, or one of {examples}"
        raise InputError(f"{what} ({error})", advice=advice) from error
    with store:
        yield store


def _load_stored(words: Sequence[str], storage: StorageSettings, *, with_uncertified: bool) -> list[WorldSource]:
    from taskdb.queries.worlds import find_certified_worlds, resolve_world  # noqa: PLC0415 - as above

    artifacts = open_artifacts(storage)
    with _open_store(storage, words) as store:
        worlds = [resolve_world(store, word) for word in words] or find_certified_worlds(store)
        if not worlds:
            advice = f"name worlds, such as {', '.join(list_example_worlds())}"
            raise InputError("the database has no certified world", advice=advice)
        return [_load_world(store, artifacts, world, with_uncertified=with_uncertified) for world in worlds]


def _load_world(store: Store, artifacts: Artifacts, world: World, *, with_uncertified: bool) -> WorldSource:
    from taskdb.queries.worlds import find_world_certificate, list_scenarios  # noqa: PLC0415 - as above

    certificate = find_world_certificate(store, world)
    scenarios = list_scenarios(store, world, certified=not with_uncertified)
    gates = {finding.name: finding.value for finding in certificate.gates} if certificate else {}
    if certificate is not None and certificate.score is not None:
        gates[ASSESSMENT] = certificate.score
    by = f"the certificate {certificate.id[:12]}" if certificate else ""
    loaded = {scenario.name: _load_scenario(store, artifacts, scenario) for scenario in scenarios}
    return WorldSource(
        contents=WorldContents(
            definition=load_world(world, artifacts),
            scenarios=tuple(scenario for scenario, _ in loaded.values()),
            rollouts={name: rollouts for name, (_, rollouts) in loaded.items()},
            license=world.license,
            origin=world.origin.value,
            models=tuple(sorted({world.model, *(scenario.model for scenario in scenarios)} - {""})),
            certification=Certification(by=by, gates=gates) if certificate else None,
        )
    )


def _load_scenario(
    store: Store, artifacts: Artifacts, record: Scenario
) -> tuple[ScenarioDefinition, tuple[WorldConversation, ...]]:
    """Return a scenario with its solution, and the rollouts that solved it."""
    from taskdb.queries.worlds import find_scenario_certificate  # noqa: PLC0415 - as above

    scenario = load_scenario(record, artifacts)
    certificate = find_scenario_certificate(store, record)
    if certificate is None:
        return scenario, ()
    calls = json.loads(artifacts.get(certificate.solution))
    model = certificate.pass_rates[0].model if certificate.pass_rates else ""
    rollouts = read_rollouts(artifacts.get(certificate.log), model) if certificate.log else ()
    return replace(scenario, solution=tuple(Call(**call) for call in calls)), rollouts
