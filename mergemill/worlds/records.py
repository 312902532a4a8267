"""Records of the task database from the objects that the stage `worlds` made, and back. Texts go to the artifacts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from taskdb.artifacts import Artifacts
from taskdb.records.worlds import (
    GateFinding,
    ModelPassRate,
    Scenario,
    ScenarioCertificate,
    World,
    WorldCertificate,
    WorldOrigin,
)
from worlds.definitions import Check, ScenarioDefinition, WorldDefinition
from worlds.gates.results import GateReport, GateResult
from worlds.gates.scenario_gates import ScenarioReport
from worlds.program.analysis import ToolKind, analyse_program

NO_ASSERTION = "NOASSERTION"


def encode_canonical(value: object) -> bytes:
    """Return a JSON value as canonical JSON: sorted keys, no white space, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def encode_lines(values: Iterable[Mapping[str, Any]]) -> bytes:
    """Return JSON lines."""
    return b"".join(json.dumps(value, ensure_ascii=False).encode(errors="replace") + b"\n" for value in values)


def make_world_record(
    world: WorldDefinition,
    artifacts: Artifacts,
    *,
    origin: WorldOrigin,
    license_id: str = NO_ASSERTION,
    parent: str | None = None,
    model: str = "",
    prompt: str = "",
    source: str = "",
) -> World:
    """Return the record of a world whose texts are in the artifacts afterwards.

    Args:
        world: the world; its program breaks no rule.
        artifacts: artifacts where its texts go.
        origin: how it came about.
        license_id: SPDX expression.
        parent: id of its theme, if any.
        model: model that wrote it.
        prompt: name and version of the prompt.
        source: source of its theme, or where it was read from.

    Raises:
        Transient: the disk is full.
    """
    analysis = analyse_program(world.program)
    return World(
        parent=parent,
        name=world.name,
        origin=origin,
        license=license_id,
        program=artifacts.put_text(world.program),
        documentation=artifacts.put_text(world.documentation),
        states=artifacts.put(encode_canonical(dict(world.states))),
        tools=artifacts.put_text(json.dumps([tool.to_json() for tool in analysis.tools])),
        model=model,
        prompt=prompt,
        source=source,
        n_tools=len(analysis.tools),
        n_queries=len(analysis.list_tools(ToolKind.QUERY)),
        n_changes=len(analysis.list_tools(ToolKind.CHANGE)),
        n_attributes=len(analysis.state_schema.get("properties", {})),
    )


def load_world(record: World, artifacts: Artifacts) -> WorldDefinition:
    """Return the world of a record.

    Raises:
        InputError: an artifact is missing or damaged.
    """
    return WorldDefinition(
        name=record.name,
        program=artifacts.get_text(record.program),
        documentation=artifacts.get_text(record.documentation),
        states=json.loads(artifacts.get(record.states)),
    )


def make_scenario_record(
    scenario: ScenarioDefinition, world: World, artifacts: Artifacts, *, model: str = "", prompt: str = ""
) -> Scenario:
    """Return the record of a scenario of a stored world; arguments and errors as of `make_world_record`."""
    definition = {
        "state": scenario.state,
        "task": scenario.task,
        "checks": [
            {"item": check.item, "function": check.function, "source": check.source} for check in scenario.checks
        ],
    }
    return Scenario(
        parent=world.id,
        world=world.name,
        name=scenario.name,
        task=scenario.task,
        definition=artifacts.put(encode_canonical(definition)),
        license=world.license,
        model=model,
        prompt=prompt,
        n_checks=len(scenario.checks),
    )


def load_scenario(record: Scenario, artifacts: Artifacts) -> ScenarioDefinition:
    """Return the scenario of a record, without a solution.

    Raises:
        InputError: an artifact is missing or damaged.
    """
    definition = json.loads(artifacts.get(record.definition))
    return ScenarioDefinition(
        name=record.name,
        world=record.world,
        state=definition["state"],
        task=definition["task"],
        checks=tuple(Check(**check) for check in definition["checks"]),
    )


def make_world_certificate(
    world: World, report: GateReport, *, n_calls: int, rounds: Mapping[str, Any] | None = None
) -> WorldCertificate:
    """Return the certificate of a world that passed all gates.

    Args:
        world: the world.
        report: results of its gates.
        n_calls: calls of each tool that the gates made.
        rounds: fields of the rounds of tester and checker, if there were any.
    """
    return WorldCertificate(
        parent=world.id, name=world.name, n_calls=n_calls, gates=list_findings(report), **(rounds or {})
    )


def make_scenario_certificate(
    scenario: Scenario,
    solved: ScenarioDefinition,
    world: WorldDefinition,
    report: ScenarioReport,
    artifacts: Artifacts,
    *,
    origin: Literal["written", "rollout"],
    pass_rates: Sequence[ModelPassRate] = (),
    log: str | None = None,
) -> ScenarioCertificate:
    """Return the certificate of a scenario that passed all gates.

    Args:
        scenario: the record.
        solved: the scenario with its solution.
        world: world of the scenario.
        report: results of its gates.
        artifacts: artifacts where the solution goes.
        origin: whether the solution came with the scenario or from a rollout.
        pass_rates: pass rates of the models whose rollouts searched for it.
        log: artifact with these rollouts.

    Raises:
        Transient: the disk is full.
    """
    calls = solved.solution or ()
    queries = analyse_program(world.program).list_tools(ToolKind.QUERY)
    mutations = next(result for result in report.results if result.gate == "mutations")
    return ScenarioCertificate(
        parent=scenario.id,
        name=scenario.name,
        solution=artifacts.put(encode_canonical([call.to_json() for call in calls])),
        solution_origin=origin,
        n_calls=len(calls),
        n_tools=len({call.tool for call in calls}),
        n_queries=sum(call.tool in queries for call in calls),
        n_kept=len(report.kept),
        mutations=mutations.tried,
        mutations_noticed=round(mutations.value * mutations.tried),
        gates=list_findings(report),
        pass_rates=tuple(pass_rates),
        log=log,
    )


def list_findings(report: GateReport) -> tuple[GateFinding, ...]:
    """Return the values that the gates measured, in their order."""
    return tuple(_make_finding(result) for result in report.results)


def _make_finding(result: GateResult) -> GateFinding:
    return GateFinding(name=result.gate, value=result.value, limit=result.limit, detail=result.detail)
