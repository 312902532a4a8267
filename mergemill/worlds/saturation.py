"""How much a further world, scenario or tool adds: accumulation curves over the worlds of the database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.statistics.accumulation import Spread, accumulate, choose_sizes, estimate_further
from mergemill.worlds.records import load_world
from taskdb.artifacts import Artifacts
from taskdb.queries.worlds import (
    find_certified_worlds,
    find_scenario_certificate,
    list_scenarios,
)
from taskdb.records.worlds import World
from taskdb.store import Store
from worlds.definitions import Call
from worlds.features import MEASURES, Features, WorldFeatures

DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class CountedUnit:
    """A world, scenario or tool. `family`: id of its world."""

    family: str
    features: Features


@dataclass(frozen=True, kw_only=True)
class SolvedWorld:
    """A certified world with the known solutions of its certified scenarios."""

    id: str
    features: WorldFeatures
    solutions: Sequence[Sequence[Call]]

    def make_world_unit(self) -> list[CountedUnit]:
        """Return the world as a unit."""
        return [CountedUnit(family=self.id, features=self.features.describe_world(self.solutions))]

    def make_scenario_units(self) -> list[CountedUnit]:
        """Return each scenario as a unit."""
        return [
            CountedUnit(family=self.id, features=self.features.describe_solution(calls)) for calls in self.solutions
        ]

    def make_tool_units(self) -> list[CountedUnit]:
        """Return each tool as a unit."""
        return [
            CountedUnit(family=self.id, features=self.features.describe_tool(name)) for name in self.features.tool_names
        ]


UNITS: Mapping[str, Callable[[SolvedWorld], list[CountedUnit]]] = {
    "world": SolvedWorld.make_world_unit,
    "scenario": SolvedWorld.make_scenario_units,
    "tool": SolvedWorld.make_tool_units,
}
"""Word of `--by` -> the function that makes the units of a world."""


@dataclass(frozen=True, kw_only=True)
class SaturationReport:
    """Rows for each measure that has features: the points of its curve, and the gain of a further unit."""

    points: Sequence[Mapping[str, Any]]
    further: Sequence[Mapping[str, Any]]


def build_saturation(store: Store, artifacts: Artifacts, unit: str, *, orders: int, seed: int) -> SaturationReport:
    """Return the curves over certified worlds, with one of UNITS as the unit.

    Raises:
        InputError: an artifact is missing or damaged.
    """
    worlds = [_load_world(store, artifacts, world) for world in find_certified_worlds(store)]
    units = [counted for world in worlds for counted in UNITS[unit](world)]
    points, further = [], []
    for measure in MEASURES if units else ():
        features = [counted.features.get(measure, set()) for counted in units]
        if not any(features):
            continue
        curve = accumulate(features, sizes=choose_sizes(len(units)), orders=orders, seed=seed)
        points += [
            {
                "by": unit,
                "measure": measure,
                "n": point.n,
                **_name("distinct", point.distinct),
                **_name("gain", point.gain),
            }
            for point in curve
        ]
        further.append({"by": unit, "measure": measure, **_describe_further(features, units)})
    return SaturationReport(points=points, further=further)


def _load_world(store: Store, artifacts: Artifacts, world: World) -> SolvedWorld:
    certificates = [
        certificate
        for scenario in list_scenarios(store, world, certified=True)
        if (certificate := find_scenario_certificate(store, scenario))
    ]
    solutions = [json.loads(artifacts.get(certificate.solution)) for certificate in certificates]
    return SolvedWorld(
        id=world.id,
        features=WorldFeatures(load_world(world, artifacts)),
        solutions=[[Call(**call) for call in solution] for solution in solutions],
    )


def _name(name: str, spread: Spread) -> dict[str, float]:
    keys = (name, f"{name}_low", f"{name}_high")
    return {key: round(value, DIGITS) for key, value in zip(keys, spread, strict=True)}


def _describe_further(features: Sequence[set[str]], units: Iterable[CountedUnit]) -> dict[str, Any]:
    families = [counted.family for counted in units]
    row: dict[str, Any] = {
        "units": len(features),
        "families": len(set(families)),
        "distinct": len(set().union(*features)),
    }
    further = estimate_further(features, families)
    values = (further.mean, further.low, further.high) if further else (None, None, None)
    for key, value in zip(("further", "low", "high"), values, strict=True):
        row[key] = None if value is None else round(value, DIGITS)
    return row
