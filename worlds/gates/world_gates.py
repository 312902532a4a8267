"""Gates of a world: TEXT_GATES need its text, RUN_GATES a container. Reading the tuples is reading the policy.

Each gate is a function that returns the value that it measured and why it fails, if it does. The first failure decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guest.world.schema_check import find_schema_error
from worlds.definitions import WorldDefinition
from worlds.gates.exploration import CallRecord, Exploration, explore_world, list_outcomes
from worlds.gates.results import GateReport, GateResult
from worlds.program.analysis import ProgramAnalysis, ToolKind, analyse_program
from worlds.program.foreign_keys import find_dangling_key
from worlds.reasons import Reason
from worlds.server.service import ServedWorld, WorldServer


@dataclass(frozen=True, kw_only=True)
class WorldGateSettings:
    """Settings of the gates of a world."""

    calls_per_tool: int = 200
    min_change_share: float = 0.6
    """Least share of the tools that change something which changed something in some call, 0..1."""
    seed: int = 0
    """Determines the arguments of the calls."""


@dataclass(frozen=True, kw_only=True)
class WorldTrial:
    """Runs that the gates of a world look at."""

    definition: WorldDefinition
    settings: WorldGateSettings = field(default_factory=WorldGateSettings)
    exploration: Exploration = field(default_factory=lambda: Exploration(episodes=()))

    @property
    def analysis(self) -> ProgramAnalysis:
        """Analysis of the program."""
        return analyse_program(self.definition.program)


Gate = Callable[[WorldTrial], GateResult]


def check_text(trial: WorldTrial) -> GateResult:
    """Fail where the program breaks a rule or gives no schemas; the reason is that of the first violation."""
    violations = trial.analysis.violations
    first = violations[0] if violations else None
    return GateResult(
        gate="text",
        value=len(violations),
        limit=0,
        reason=first.reason if first else None,
        detail=str(first) if first else "",
    )


def check_states(trial: WorldTrial) -> GateResult:
    """Fail where there is no initial state, or a state breaks the annotations or the foreign keys of the program."""
    states = trial.definition.states
    if not states:
        return GateResult(gate="states", value=0, limit=1, reason=Reason.NO_STATE)
    for name, state in states.items():
        if error := find_schema_error(state, trial.analysis.state_schema, name):
            return GateResult(gate="states", value=len(states), limit=1, reason=Reason.WRONG_STATE_TYPE, detail=error)
        if error := find_dangling_key(state, trial.analysis.foreign_keys):
            detail = f"{name}: {error}"
            return GateResult(gate="states", value=len(states), limit=1, reason=Reason.DANGLING_KEY, detail=detail)
    return GateResult(gate="states", value=len(states), limit=1)


def check_loading(trial: WorldTrial) -> GateResult:
    """Fail where the program cannot be loaded, or no object made from an initial state."""
    fault = trial.exploration.load_fault
    return GateResult(
        gate="loading",
        value=len(trial.exploration.episodes),
        reason=Reason(fault.reason.value) if fault else None,
        detail=fault.detail if fault else "",
    )


def check_faults(trial: WorldTrial) -> GateResult:
    """Fail where a call raises, returns no `success`, never ends, or takes too much memory or output."""
    calls = trial.exploration.calls
    # Exploration ends with the first fault, so no call but the last can have it.
    last = calls[-1] if calls else None
    if last is None or last.fault is None:
        return GateResult(gate="faults", value=0, limit=0)
    return GateResult(
        gate="faults",
        value=1,
        limit=0,
        reason=Reason(last.fault.reason.value),
        detail=_describe(last, last.fault.detail),
    )


def check_failed_calls(trial: WorldTrial) -> GateResult:
    """Fail where a call that reported failure changed the state."""
    calls = [call for call in trial.exploration.calls if not call.is_success and call.is_changed]
    return _count("failed-calls", calls, Reason.FAILED_CALL_MUTATES)


def check_queries(trial: WorldTrial) -> GateResult:
    """Fail where a query changed the state."""
    queries = trial.analysis.list_tools(ToolKind.QUERY)
    calls = [call for call in trial.exploration.calls if call.tool in queries and call.is_changed]
    return _count("queries", calls, Reason.QUERY_MUTATES)


def check_state_types(trial: WorldTrial) -> GateResult:
    """Fail where a state is not as the annotations of the attributes have it."""
    calls = [call for call in trial.exploration.calls if call.wrong_type]
    return _count("state-types", calls, Reason.WRONG_STATE_TYPE, calls[0].wrong_type if calls else "")


def check_foreign_keys(trial: WorldTrial) -> GateResult:
    """Fail where a foreign key refers to nothing after a call."""
    calls = [call for call in trial.exploration.calls if call.dangling_key]
    return _count("foreign-keys", calls, Reason.DANGLING_KEY, calls[0].dangling_key if calls else "")


def check_repeats(trial: WorldTrial) -> GateResult:
    """Fail where a replayed episode gave other results or states."""
    exploration = trial.exploration
    pairs = zip(exploration.episodes, exploration.replayed, strict=False)
    n_different = sum(list_outcomes(pair.calls) != replayed for pair, replayed in pairs)
    reason = Reason.NOT_REPEATABLE if n_different else None
    return GateResult(gate="repeats", value=n_different, limit=0, reason=reason)


def check_hidden_state(trial: WorldTrial) -> GateResult:
    """Fail where an episode that was continued from a saved state gave other results or states."""
    exploration = trial.exploration
    pairs = zip(exploration.episodes, exploration.continued, strict=False)
    n_different = sum(list_outcomes(pair.calls[pair.middle :]) != continued for pair, continued in pairs)
    reason = Reason.HIDDEN_STATE if n_different else None
    return GateResult(gate="hidden-state", value=n_different, limit=0, reason=reason)


def check_dead_tools(trial: WorldTrial) -> GateResult:
    """Fail where a tool never succeeded."""
    alive = {call.tool for call in trial.exploration.calls if call.is_success}
    dead = [tool.name for tool in trial.analysis.tools if tool.name not in alive]
    reason = Reason.DEAD_TOOL if dead else None
    return GateResult(gate="dead-tools", value=len(dead), limit=0, reason=reason, detail=", ".join(dead))


def check_changes(trial: WorldTrial) -> GateResult:
    """Fail where too small a share of the tools that change something ever did."""
    changes = trial.analysis.list_tools(ToolKind.CHANGE)
    effective = {call.tool for call in trial.exploration.calls if call.is_success and call.is_changed}
    idle = [name for name in changes if name not in effective]
    share = 1 - len(idle) / len(changes) if changes else 0.0
    limit = trial.settings.min_change_share
    reason = Reason.FEW_CHANGES if share < limit else None
    return GateResult(gate="changes", value=share, limit=limit, reason=reason, detail=", ".join(idle))


TEXT_GATES: tuple[Gate, ...] = (check_text, check_states)
RUN_GATES: tuple[Gate, ...] = (
    check_loading,
    check_faults,
    check_failed_calls,
    check_queries,
    check_state_types,
    check_foreign_keys,
    check_repeats,
    check_hidden_state,
    check_dead_tools,
    check_changes,
)


def assess_world(
    definition: WorldDefinition,
    server: WorldServer,
    replay_server: WorldServer | None = None,
    settings: WorldGateSettings | None = None,
) -> GateReport:
    """Return the results of all gates up to the first that fails.

    Args:
        definition: the world.
        server: server that runs the calls.
        replay_server: replays some of them; a second container shows the results that depend on addresses in memory.
        settings: settings of the gates.

    Raises:
        Transient: the container has ended, or the engine cannot be reached.
    """
    trial = WorldTrial(definition=definition, settings=settings or WorldGateSettings())
    results = _run_gates(TEXT_GATES, trial)
    # A program whose text breaks a rule is never run.
    if results[-1].reason is None:
        with server.load(definition) as world, (replay_server or server).load(definition) as replay_world:
            trial = WorldTrial(
                definition=definition,
                settings=trial.settings,
                exploration=_explore(world, replay_world, trial.settings),
            )
        results += _run_gates(RUN_GATES, trial)
    return GateReport(name=definition.name, results=tuple(results))


def _explore(world: ServedWorld, replay_world: ServedWorld, settings: WorldGateSettings) -> Exploration:
    return explore_world(world, replay_world, calls=settings.calls_per_tool, seed=settings.seed)


def _run_gates(gates: tuple[Gate, ...], trial: WorldTrial) -> list[GateResult]:
    results: list[GateResult] = []
    for gate in gates:
        results.append(gate(trial))
        if results[-1].reason is not None:
            break
    return results


def _count(gate: str, calls: list[CallRecord], reason: Reason, detail: str | None = "") -> GateResult:
    if not calls:
        return GateResult(gate=gate, value=0, limit=0)
    return GateResult(gate=gate, value=len(calls), limit=0, reason=reason, detail=_describe(calls[0], detail or ""))


def _describe(call: CallRecord, detail: str) -> str:
    text = f"{call.tool}({_format_arguments(call.arguments)})"
    return f"{text}: {detail}" if detail else text


def _format_arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())[:300]
