"""Gates of a scenario; reading SCENARIO_GATES is reading the policy.

Each gate is a function that returns the value that it measured and why it fails, if it does. The first failure decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from guest.world.reasons import CheckOutcome
from guest.world.schema_check import find_schema_error
from worlds.definitions import Call, ScenarioDefinition, State
from worlds.gates.mutations import MutationKind, list_mutations
from worlds.gates.results import GateReport, GateResult
from worlds.gates.solutions import (
    SolutionRun,
    find_detour,
    is_same_end,
    list_new_ids,
    list_orders,
    rename_values,
    run_calls,
)
from worlds.program.foreign_keys import find_dangling_key
from worlds.program.rules import find_violations
from worlds.reasons import Reason
from worlds.rewards import compute_reward, find_kept_checks
from worlds.server.service import CheckResult, ServedWorld, WorldServer

N_FRESH_RUNS = 2
"""Runs of the solution, each from a fresh episode, that must earn 1."""
OTHER_SEEDS = (1, 2)
"""Seeds of runs in which made ids and random values may differ."""


@dataclass(frozen=True, kw_only=True)
class ScenarioGateSettings:
    """Settings of the gates of a scenario."""

    min_noticed: float = 0.7
    """Least share of the mutations in fields that the task names which the checks notice, 0..1."""
    max_mutations: int = 100
    """Mutations that are tried, spread over the final state."""


@dataclass(frozen=True, kw_only=True)
class ScenarioTrial:
    """Runs that the gates of a scenario look at. Runs are made when a gate first needs them."""

    scenario: ScenarioDefinition
    world: ServedWorld
    server: WorldServer
    settings: ScenarioGateSettings = field(default_factory=ScenarioGateSettings)

    def run_checks(self, final: State, *, seed: int = 0) -> list[CheckResult]:
        """Return the results of all checks on a final state."""
        return self.server.run_checks(self.scenario.checks, self.scenario.state, final, seed=seed)

    def compute_reward(self, final: State) -> float:
        """Return the reward of a final state, 0..1."""
        return compute_reward(self.run_checks(final), self.kept)

    @cached_property
    def at_start(self) -> list[CheckResult]:
        """Results of the checks where nothing was done."""
        return self.run_checks(self.scenario.state)

    @cached_property
    def kept(self) -> frozenset[int]:
        """Numbers of the checks that hold from the start."""
        return find_kept_checks(self.at_start)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The known solution; empty where there is none."""
        return self.scenario.solution or ()

    @cached_property
    def solved(self) -> SolutionRun:
        """The first run of the solution."""
        return run_calls(self.world, self.scenario.state, self.calls)


Gate = Callable[[ScenarioTrial], GateResult]
_BOOLEANS = (CheckOutcome.PASSED, CheckOutcome.FAILED)


def check_initial_state(trial: ScenarioTrial) -> GateResult:
    """Fail where the state cannot be loaded, or breaks the annotations or foreign keys of the program."""
    state, analysis = trial.scenario.state, trial.world.analysis
    reason, detail = None, ""
    if error := find_schema_error(state, analysis.state_schema, "state"):
        reason, detail = Reason.WRONG_STATE_TYPE, error
    elif error := find_dangling_key(state, analysis.foreign_keys):
        reason, detail = Reason.DANGLING_KEY, error
    else:
        with trial.world.open_episode(state) as episode:
            if episode.fault is not None:
                reason, detail = Reason(episode.fault.reason.value), episode.fault.detail
    return GateResult(gate="initial-state", value=float(reason is None), limit=1, reason=reason, detail=detail)


def check_presence(trial: ScenarioTrial) -> GateResult:
    """Fail where there is no check, and so no reward."""
    n_checks = len(trial.scenario.checks)
    return GateResult(gate="presence", value=n_checks, limit=1, reason=None if n_checks else Reason.NO_CHECKS)


def check_texts(trial: ScenarioTrial) -> GateResult:
    """Fail where the source of a check breaks a rule of programs."""
    texts = [
        f"{check.function}: {violation}"
        for check in trial.scenario.checks
        for violation in find_violations(check.source)
    ]
    return _count("check-texts", texts, Reason.CHECKS_REFUSED)


def check_outcomes(trial: ScenarioTrial) -> GateResult:
    """Fail where a check alters its input or returns no boolean, before or after the solution, or raises after it."""
    at_end = trial.run_checks(trial.solved.final) if trial.calls else []
    results = [*trial.at_start, *at_end]
    altered = [result.function for result in results if result.outcome is CheckOutcome.ALTERED]
    if altered:
        return _count("check-outcomes", altered, Reason.CHECKS_MUTATE)
    others = [f"{result.function}: {result.detail}" for result in results if result.outcome is CheckOutcome.NOT_BOOLEAN]
    if others:
        return _count("check-outcomes", others, Reason.CHECKS_NOT_BOOLEAN)
    broken = [f"{result.function}: {result.outcome.value}" for result in at_end if result.outcome not in _BOOLEANS]
    return _count("check-outcomes", broken, Reason.CHECKS_RAISE)


def check_determinism(trial: ScenarioTrial) -> GateResult:
    """Fail where a check gives something else in other runs, with other random numbers and another clock."""
    finals = [trial.scenario.state, *([trial.solved.final] if trial.calls else [])]
    functions = [
        check.function
        for final in finals
        for seed in OTHER_SEEDS
        for check, other in zip(trial.run_checks(final), trial.run_checks(final, seed=seed), strict=True)
        if check.outcome is not other.outcome
    ]
    return _count("check-determinism", functions, Reason.CHECKS_VARY)


def check_nothing_done(trial: ScenarioTrial) -> GateResult:
    """Fail where all checks hold from the start, so that none can earn anything."""
    n_checks = len(trial.scenario.checks)
    reason = Reason.CHECKS_ALREADY_HOLD if len(trial.kept) == n_checks else None
    detail = ", ".join(trial.scenario.checks[number].function for number in sorted(trial.kept))
    return GateResult(gate="nothing-done", value=n_checks - len(trial.kept), limit=1, reason=reason, detail=detail)


def check_solution(trial: ScenarioTrial) -> GateResult:
    """Fail where no solution is known, or it does not earn 1 in each of two fresh episodes."""
    if not trial.calls:
        return GateResult(gate="solution", value=0.0, limit=1.0, reason=Reason.UNSOLVED, detail="no solution is known")
    runs = [run_calls(trial.world, trial.scenario.state, trial.calls) for _ in range(N_FRESH_RUNS)]
    worst = min(runs, key=lambda run: trial.compute_reward(run.final))
    value = trial.compute_reward(worst.final)
    return GateResult(
        gate="solution",
        value=value,
        limit=1.0,
        reason=Reason.UNSOLVED if value < 1.0 else None,
        detail=_describe_failure(trial, worst) if value < 1.0 else "",
    )


def check_mutations(trial: ScenarioTrial) -> GateResult:
    """Fail where the checks do not notice enough of the mutations in fields that the task names."""
    mutations = list_mutations(trial.scenario.state, trial.solved.final, trial.scenario.task)
    mutations = [mutation for mutation in mutations if mutation.is_named and mutation.kind is not MutationKind.ADDED]
    step = max(1, -(-len(mutations) // trial.settings.max_mutations))
    tried = mutations[::step]
    missed = [mutation for mutation in tried if trial.compute_reward(mutation.state) == 1.0]
    share = 1 - len(missed) / len(tried) if tried else 0.0
    limit = trial.settings.min_noticed
    reason = Reason.CHECKS_BLIND if share < limit else None
    detail = ", ".join(map(str, missed)) if tried else "the task names nothing that the solution changed"
    return GateResult(gate="mutations", value=share, limit=limit, reason=reason, detail=detail[:500], tried=len(tried))


def check_other_ways(trial: ScenarioTrial) -> GateResult:
    """Fail where the solution earns less with another seed, between queries, or with other made ids."""
    state, calls = trial.scenario.state, trial.calls
    detour = find_detour(trial.world)
    ways = {f"seed {seed}": run_calls(trial.world, state, calls, seed=seed) for seed in OTHER_SEEDS}
    if detour is not None:
        ways[f"{detour.tool} before each call"] = run_calls(trial.world, state, calls, detour=detour)
    # A run in which other calls succeed than in the solution is not another way to the same end.
    finals = {name: run.final for name, run in ways.items() if run.successes == trial.solved.successes}
    # An id that the task names is not made up by the program, so checks may rely on it.
    made = [new_id for new_id in list_new_ids(state, trial.solved.final) if new_id not in trial.scenario.task]
    if made:
        names = {new_id: f"{new_id}-other" for new_id in made}
        finals[f"other ids than {', '.join(made)}"] = rename_values(trial.solved.final, names)
    failed = [name for name, final in finals.items() if trial.compute_reward(final) < 1.0]
    return _count("other-ways", failed, Reason.CHECKS_TOO_NARROW)


def check_orders(trial: ScenarioTrial) -> GateResult:
    """Fail where the same end by another order of independent calls earns less.

    Calls are independent where they succeed in the other order, too, and lead to the same state but for made ids and
    the order of lists.
    """
    same, failed = 0, []
    for order in list_orders(trial.calls):
        run = run_calls(trial.world, trial.scenario.state, trial.calls, order=order)
        if run.successes == trial.solved.successes and is_same_end(trial.scenario.state, trial.solved.final, run.final):
            same += 1
            if trial.compute_reward(run.final) < 1.0:
                failed.append(f"order {', '.join(map(str, order))}")
    reason = Reason.CHECKS_TOO_NARROW if failed else None
    return GateResult(gate="orders", value=same, reason=reason, detail="; ".join(failed)[:500])


SCENARIO_GATES: tuple[Gate, ...] = (
    check_initial_state,
    check_presence,
    check_texts,
    check_outcomes,
    check_determinism,
    check_nothing_done,
    check_solution,
    check_other_ways,
    check_orders,
    check_mutations,
)


@dataclass(frozen=True, kw_only=True)
class ScenarioReport(GateReport):
    """Report on a scenario. `kept`: names of the check functions that hold from the start and may not break."""

    kept: tuple[str, ...]


def assess_scenario(
    scenario: ScenarioDefinition, world: ServedWorld, server: WorldServer, settings: ScenarioGateSettings | None = None
) -> ScenarioReport:
    """Return the results of all gates up to the first that fails.

    Args:
        scenario: the scenario.
        world: world of the scenario, loaded.
        server: the server that runs the world.
        settings: settings of the gates.

    Raises:
        Transient: the container has ended, or the engine cannot be reached.
    """
    trial = ScenarioTrial(scenario=scenario, world=world, server=server, settings=settings or ScenarioGateSettings())
    results: list[GateResult] = []
    for gate in SCENARIO_GATES:
        results.append(gate(trial))
        if results[-1].reason is not None:
            break
    # Reading `kept` runs the checks, which must not happen where an earlier gate has failed.
    is_started = "at_start" in trial.__dict__
    kept = tuple(scenario.checks[number].function for number in sorted(trial.kept)) if is_started else ()
    return ScenarioReport(name=scenario.name, results=tuple(results), kept=kept)


def _count(gate: str, problems: Sequence[str], reason: Reason) -> GateResult:
    return GateResult(
        gate=gate, value=len(problems), limit=0, reason=reason if problems else None, detail=", ".join(problems)[:500]
    )


def _describe_failure(trial: ScenarioTrial, run: SolutionRun) -> str:
    if run.fault is not None:
        return f"{run.fault.reason.value}: {run.fault.detail}"
    failed = [
        f"{call.tool}: {result.value.get('error')}"
        for call, result in zip(trial.calls, run.results, strict=True)
        if not result.is_success
    ]
    missed = [result.function for result in trial.run_checks(run.final) if not result.is_passed]
    return "; ".join([*failed, *(f"{name} does not hold" for name in missed)])[:500]
