"""Worlds and scenarios of the task database, with their texts."""

from __future__ import annotations

import json
from typing import Any

from core.errors import InputError
from taskdb.artifacts import Artifacts
from taskdb.queries.worlds import (
    find_matches,
    find_scenario_certificate,
    find_state,
    find_world_certificate,
    list_scenario_rows,
    resolve_scenario,
    resolve_world,
)
from taskdb.records import to_json
from taskdb.records.worlds import Scenario, World
from taskdb.store import Store


def find_world_or_scenario(store: Store, word: str) -> World | Scenario:
    """Return the world, else the scenario, of a name, an id or an unambiguous prefix of an id.

    Raises:
        InputError: none or several match.
    """
    if find_matches(store, "world", word):
        return resolve_world(store, word)
    if find_matches(store, "scenario", word):
        return resolve_scenario(store, word)
    raise InputError(f"there is no world or scenario {word}", advice="`mergemill worlds list` lists the worlds")


def describe_world(store: Store, artifacts: Artifacts, world: World) -> dict[str, Any]:
    """Return a world as JSON: its record with status, reason, certificate, documentation, tools and scenarios.

    Raises:
        InputError: an artifact is missing.
    """
    certificate = find_world_certificate(store, world)
    rates = {"pass_rate": certificate.pass_rate, "score": certificate.score} if certificate else {}
    return {
        **to_json(world),
        "theme": world.parent,
        **find_state(store, world),
        "certificate": {**to_json(certificate), **rates} if certificate else None,
        "documentation": artifacts.get_text(world.documentation),
        "tools": json.loads(artifacts.get(world.tools)),
        "scenarios": list_scenario_rows(store, world),
    }


def describe_scenario(store: Store, artifacts: Artifacts, scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as JSON: its record with status, reason, certificate, initial state, checks and solution.

    Raises:
        InputError: an artifact is missing.
    """
    certificate = find_scenario_certificate(store, scenario)
    definition = json.loads(artifacts.get(scenario.definition))
    return {
        **to_json(scenario),
        **find_state(store, scenario),
        "certificate": to_json(certificate) if certificate else None,
        "state": definition["state"],
        "checks": definition["checks"],
        "solution": json.loads(artifacts.get(certificate.solution)) if certificate else None,
    }
