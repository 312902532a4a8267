"""Records of worlds for tests."""

from __future__ import annotations

import json
from typing import Any

from taskdb.artifacts import Artifacts
from taskdb.records.worlds import (
    GateFinding,
    Scenario,
    ScenarioCertificate,
    Theme,
    World,
    WorldCertificate,
    WorldOrigin,
    WorldRejection,
    WorldStep,
)
from taskdb.store import Store

TOOL = {"name": "lend_book", "description": "Lend a book.\nOnly to members.", "parameters": {"type": "object"}}
CHECK = {"item": "Has lent the book", "function": "has_lent", "source": "def has_lent(final_state): ..."}
SOLUTION = [{"tool": "lend_book", "arguments": {"book_id": "b1"}}]


def make_theme(name: str = "library_loans", **fields: Any) -> Theme:
    given: dict[str, Any] = {
        "source": "tasks.jsonl",
        "name": name,
        "label": name.replace("_", " ").capitalize(),
        "description": "Members borrow books.",
        "task": f"Do something with {name}.",
        "license": "MIT",
        "usefulness": 8,
        "modelability": 9,
        "model": "org/m",
        "prompt": "theme-1",
    }
    return Theme(**given | fields)


def make_world(theme: Theme | None = None, name: str = "library_loans", **fields: Any) -> World:
    given: dict[str, Any] = {
        "parent": theme.id if theme else None,
        "name": theme.name if theme else name,
        "origin": WorldOrigin.SYNTHESISED if theme else WorldOrigin.WRITTEN,
        "license": "MIT",
        "program": "a" * 64,
        "documentation": "b" * 64,
        "states": "c" * 64,
        "tools": "d" * 64,
        "model": "org/m" if theme else "",
        "prompt": "build-1" if theme else "",
        "source": theme.source if theme else "",
        "n_tools": 16,
        "n_queries": 7,
        "n_changes": 9,
        "n_attributes": 4,
    }
    return World(**given | fields)


def make_world_certificate(world: World, **fields: Any) -> WorldCertificate:
    given: dict[str, Any] = {
        "parent": world.id,
        "name": world.name,
        "n_calls": 200,
        "gates": (GateFinding(name="queries", value=0.0, limit=0.0), GateFinding(name="changes", value=1.0, limit=0.6)),
        "rounds": 100,
        "passed": 84,
        "warned": 1,
        "failed": 15,
        "tester": "org/t",
        "checker": "org/c",
        "prompt": "assess-1",
    }
    return WorldCertificate(**given | fields)


def make_scenario(world: World, name: str = "busy_morning", **fields: Any) -> Scenario:
    given: dict[str, Any] = {
        "parent": world.id,
        "world": world.name,
        "name": f"{world.name}.{name}",
        "task": "Lend three books.",
        "definition": "e" * 64,
        "license": world.license,
        "n_checks": 5,
    }
    return Scenario(**given | fields)


def make_scenario_certificate(scenario: Scenario, **fields: Any) -> ScenarioCertificate:
    given: dict[str, Any] = {
        "parent": scenario.id,
        "name": scenario.name,
        "solution": "f" * 64,
        "solution_origin": "written",
        "n_calls": 6,
        "n_tools": 4,
        "n_queries": 2,
        "n_kept": 1,
        "mutations": 10,
        "mutations_noticed": 9,
    }
    return ScenarioCertificate(**given | fields)


def reject(parent: str, name: str, step: WorldStep, reason: str = "query-mutates", **fields: Any) -> WorldRejection:
    return WorldRejection(
        parent=parent, name=name, source="tasks.jsonl", step=step, reason=reason, **{"detail": "", **fields}
    )


def add_library(store: Store, artifacts: Artifacts) -> World:
    """Add a certified world with a certified scenario, with all their texts, and return it."""
    definition = {"state": {"books": {}}, "task": "Lend.", "checks": [CHECK]}
    world = make_world(
        make_theme(),
        program=artifacts.put_text("class Library: ...\n"),
        documentation=artifacts.put_text("# Library\nMembers borrow books.\n"),
        states=artifacts.put_text("{}"),
        tools=artifacts.put_text(json.dumps([TOOL])),
    )
    scenario = make_scenario(world, definition=artifacts.put_text(json.dumps(definition)))
    proof = make_scenario_certificate(scenario, solution=artifacts.put_text(json.dumps(SOLUTION)))
    store.add(make_theme(), world, make_world_certificate(world), scenario, proof)
    return world
