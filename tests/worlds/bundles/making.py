"""Bundles of the example worlds and of the small world of the tests, played on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.worlds.local_server import make_local_server
from worlds.bundles.contents import BundledWorld, Certification, WorldContents
from worlds.bundles.formats import FORMATS, BundleCounts
from worlds.bundles.playing import play_scenario
from worlds.bundles.writer import write_bundle
from worlds.definitions import ScenarioDefinition, WorldDefinition
from worlds.examples.loading import list_example_worlds, load_example_scenarios, load_example_world


def bundle_world(
    definition: WorldDefinition,
    scenarios: Sequence[ScenarioDefinition],
    *,
    license_id: str = "Apache-2.0",
    certified: bool = True,
) -> BundledWorld:
    """Return a world whose scenarios were played."""
    server = make_local_server()
    gates = {"queries": 0.0, "changes": 1.0}
    contents = WorldContents(
        definition=definition,
        scenarios=tuple(scenarios),
        license=license_id,
        origin="written",
        certification=Certification(by="the tests", gates=gates) if certified else None,
    )
    with server.load(definition) as world:
        played = tuple(play_scenario(scenario, world, server) for scenario in scenarios)
    return BundledWorld(contents=contents, scenarios=played)


@cache
def bundle_examples() -> tuple[BundledWorld, ...]:
    return tuple(bundle_world(load_example_world(name), load_example_scenarios(name)) for name in list_example_worlds())


def write_examples(format_name: str, out: Path) -> BundleCounts:
    return write_bundle(bundle_examples(), out, FORMATS[format_name], left_out={}, files={})
