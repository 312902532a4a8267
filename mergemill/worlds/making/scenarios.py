"""The step `scenarios`: initial states, tasks and checks of certified worlds, and the proof that each can be solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backends.llm.meter import UsageMeter
from mergemill.worlds.containers import OpenServer
from mergemill.worlds.making.work import MakingCount, Rejected, WorkBench
from mergemill.worlds.records import (
    encode_lines,
    load_scenario,
    load_world,
    make_scenario_certificate,
    make_scenario_record,
)
from taskdb.queries.worlds import (
    find_certified_worlds,
    find_pending_scenarios,
    list_rejected_names,
    list_scenarios,
)
from taskdb.records.worlds import ModelPassRate, Scenario, ScenarioCertificate, World, WorldStep
from worlds.definitions import Call, ScenarioDefinition, State, WorldDefinition
from worlds.gates.scenario_gates import ScenarioGateSettings, ScenarioReport, assess_scenario
from worlds.model_requests import ModelRole
from worlds.reasons import Reason
from worlds.scenarios.solving import ScenarioSolver, SolverRollout, list_solutions
from worlds.scenarios.writing import PROMPTS_OF_SCENARIOS, ScenarioWriter
from worlds.server.service import ServedWorld, WorldServer
from worlds.states import digest_state, make_state_question


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Place of a scenario of a world, from number 1 on."""

    record: World
    world: WorldDefinition
    number: int

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return f"{self.record.name}.s{self.number:02}"

    @property
    def key(self) -> tuple[str, str]:
        """Id of the world and name of the scenario."""
        return self.record.id, self.name


@dataclass(frozen=True, kw_only=True)
class ScenarioStep:
    """Certified worlds -> scenarios -> certificates."""

    bench: WorkBench
    open_server: OpenServer

    def run(self) -> MakingCount:
        """Store scenarios, certificates and rejections; the units that are counted are places for scenarios."""
        bench, count = self.bench, MakingCount(step=WorldStep.SCENARIOS)
        certified = find_certified_worlds(bench.store)
        worlds = [world for world in certified if bench.request.includes(world.name, world.id)]
        slots = [slot for world in worlds for slot in self._list_slots(world)]
        pending = self._find_pending(worlds)
        if not slots and not pending:
            return count
        done = {world.id: self._find_done(world) for world in worlds}
        missing = {slot.key for slot in slots if slot.name not in done[slot.record.id]}
        count.found = len(missing) + len(pending)
        with self.open_server() as server:
            if missing:
                # The states of all places, as which one is a repetition depends on those before it.
                open_worlds = {world for world, _ in missing}
                needed = [slot for slot in slots if slot.record.id in open_worlds]
                self._write_scenarios(self._write_states(needed, missing, count), server, count)
            # Read again, since the scenarios that were written just now are pending, too.
            self._certify(self._find_pending(worlds), {world.id: world for world in worlds}, server, count)
        return count

    def _list_slots(self, record: World) -> list[Slot]:
        world = load_world(record, self.bench.artifacts)
        return [Slot(record=record, world=world, number=number + 1) for number in range(self.bench.options.states)]

    def _find_done(self, record: World) -> set[str]:
        """Return the names of scenarios that exist or were rejected."""
        store = self.bench.store
        rejected = list_rejected_names(store, record.id, WorldStep.SCENARIOS, retry=self.bench.request.retry)
        return {*rejected, *(scenario.name for scenario in list_scenarios(store, record))}

    def _find_pending(self, worlds: Sequence[World]) -> list[Scenario]:
        ids = {world.id for world in worlds}
        pending_scenarios = find_pending_scenarios(self.bench.store, retry=self.bench.request.retry)
        return [scenario for scenario in pending_scenarios if scenario.parent in ids]

    def _write_states(
        self, slots: Sequence[Slot], missing: set[tuple[str, str]], count: MakingCount
    ) -> list[tuple[Slot, State]]:
        """Return the states of the places that have no scenario yet; unusable and repeated scenarios are rejected."""
        bench = self.bench

        def work(slot: Slot, meter: UsageMeter) -> State:
            question = make_state_question(
                slot.world,
                bench.options,
                purpose="initial-state",
                number=slot.number,
                total=bench.options.states,
                temperature=bench.options.state_temperature,
            )
            return bench.models.require(question, meter)

        outcomes = bench.process(
            WorldStep.SCENARIOS,
            "state",
            slots,
            name=lambda slot: slot.name,
            work=work,
            keep=lambda _slot, _value: False,
        )
        seen: dict[tuple[str, str], str] = {}
        states: list[tuple[Slot, State]] = []
        for slot, outcome in zip(slots, outcomes, strict=True):
            rejected = outcome if isinstance(outcome, Rejected) else None
            if isinstance(outcome, dict):
                first = seen.setdefault((slot.record.id, digest_state(outcome)), slot.name)
                if first != slot.name:
                    rejected = Rejected(reason=Reason.SAME_STATE, detail=f"that of {first}")
            if slot.key not in missing:
                continue
            if rejected is not None:
                self._reject_slot(slot, rejected, count)
                bench.report(WorldStep.SCENARIOS, slot.name, rejected)
            elif isinstance(outcome, dict):
                states.append((slot, outcome))
        return states

    def _write_scenarios(self, states: Sequence[tuple[Slot, State]], server: WorldServer, count: MakingCount) -> None:
        bench = self.bench

        def work(item: tuple[Slot, State], meter: UsageMeter) -> Scenario:
            slot, state = item
            writer = ScenarioWriter(
                name=slot.name,
                number=slot.number,
                world=slot.world,
                state=state,
                models=bench.models,
                options=bench.options,
                meter=meter,
                run_check=lambda check, state: server.run_checks([check], state, state)[0],
            )
            model = bench.models.names[ModelRole.WRITER]
            return make_scenario_record(
                writer.write(), slot.record, bench.artifacts, model=model, prompt=PROMPTS_OF_SCENARIOS
            )

        def keep(item: tuple[Slot, State], value: Scenario | Rejected) -> bool:
            if isinstance(value, Rejected):
                self._reject_slot(item[0], value, count)
                return True
            bench.add(value)
            return False

        bench.process(
            WorldStep.SCENARIOS, "scenario to write", states, name=lambda item: item[0].name, work=work, keep=keep
        )

    def _reject_slot(self, slot: Slot, rejected: Rejected, count: MakingCount) -> None:
        record = slot.record
        self.bench.reject(WorldStep.SCENARIOS, record.id, slot.name, record.source, rejected)
        count.rejected[rejected.reason.value] += 1

    def _certify(
        self, scenarios: Sequence[Scenario], worlds: dict[str, World], server: WorldServer, count: MakingCount
    ) -> None:
        bench = self.bench

        def keep(scenario: Scenario, value: ScenarioCertificate | Rejected) -> bool:
            if isinstance(value, Rejected):
                source = worlds[scenario.parent].source
                bench.reject(WorldStep.SCENARIOS, scenario.id, scenario.name, source, value)
                count.rejected[value.reason.value] += 1
            else:
                bench.add(value)
                count.kept += 1
            return True

        bench.process(
            WorldStep.SCENARIOS,
            "scenario to solve",
            scenarios,
            name=lambda scenario: scenario.name,
            work=lambda scenario, meter: self._certify_one(scenario, worlds[scenario.parent], server, meter),
            keep=keep,
        )

    def _certify_one(
        self, record: Scenario, world_record: World, server: WorldServer, meter: UsageMeter
    ) -> ScenarioCertificate | Rejected:
        """Return the certificate of a scenario, or why it has none. Rollouts are paid for where early gates pass."""
        bench, options = self.bench, self.bench.options
        world = load_world(world_record, bench.artifacts)
        scenario = load_scenario(record, bench.artifacts)
        settings = ScenarioGateSettings(min_noticed=options.min_noticed)
        with server.load(world) as served:
            report = assess_scenario(scenario, served, server, settings)
            if report.reason is not Reason.UNSOLVED:
                return _make_rejected(report, None)
            solver = ScenarioSolver(
                scenario=scenario, world=world, server=server, models=bench.models, options=options, meter=meter
            )
            rollouts = solver.run()
            log = bench.artifacts.put(encode_lines(rollout.to_json() for rollout in rollouts))
            candidates = list_solutions(rollouts, scenario)
            if not candidates:
                return Rejected(reason=Reason.UNSOLVED, detail=_describe_rewards(rollouts), log=log)
            solved, report = _prove(scenario, candidates, served, server, settings)
        if report.reason is not None:
            return _make_rejected(report, log)
        return make_scenario_certificate(
            record,
            solved,
            world,
            report,
            bench.artifacts,
            origin="rollout",
            pass_rates=[_compute_pass_rate(bench.models.names[ModelRole.SOLVER], rollouts)],
            log=log,
        )


def _prove(
    scenario: ScenarioDefinition,
    candidates: Sequence[tuple[Call, ...]],
    served: ServedWorld,
    server: WorldServer,
    settings: ScenarioGateSettings,
) -> tuple[ScenarioDefinition, ScenarioReport]:
    """Return the scenario with the first call list that earns 1 from fresh, and the report of all gates on it."""
    for calls in candidates:
        solved = replace(scenario, solution=calls)
        report = assess_scenario(solved, served, server, settings)
        if report.reason is not Reason.UNSOLVED:
            break
    return solved, report


def _make_rejected(report: ScenarioReport, log: str | None) -> Rejected:
    failure = report.failure
    reason = failure.reason if failure and failure.reason else Reason.UNSOLVED
    return Rejected(reason=reason, detail=f"{failure.gate}: {failure.detail}" if failure else "", log=log)


def _describe_rewards(rollouts: Sequence[SolverRollout]) -> str:
    rewards = ", ".join(f"{rollout.reward:.2f} ({rollout.ended})" for rollout in rollouts)
    return f"none of {len(rollouts)} rollouts earned 1: {rewards}"


def _compute_pass_rate(model: str, rollouts: Sequence[SolverRollout]) -> ModelPassRate:
    mean = sum(rollout.reward for rollout in rollouts) / len(rollouts)
    return ModelPassRate(
        model=model, attempts=len(rollouts), solved=sum(rollout.is_solved for rollout in rollouts), mean_reward=mean
    )
