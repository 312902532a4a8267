"""The step `assess`: the gates that need no model, then the rounds of tester and checker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backends.llm.meter import UsageMeter
from mergemill.worlds.containers import OpenServer
from mergemill.worlds.making.work import MakingCount, Rejected, WorkBench
from mergemill.worlds.records import encode_lines, load_world, make_world_certificate
from taskdb.queries.worlds import find_pending_worlds
from taskdb.records.worlds import World, WorldCertificate, WorldStep
from worlds.assessment.rounds import CHECKER_PROMPT, TESTER_PROMPT, CallVerdict, WorldAssessor
from worlds.gates.world_gates import WorldGateSettings, assess_world
from worlds.model_requests import ModelRole
from worlds.server.service import WorldServer


@dataclass(frozen=True, kw_only=True)
class AssessStep:
    """Worlds without a certificate -> certificates.

    Two containers run them: one replays the calls that the other ran.
    """

    bench: WorkBench
    open_server: OpenServer

    def run(self) -> MakingCount:
        """Store certificates and rejections."""
        bench, count = self.bench, MakingCount(step=WorldStep.ASSESS)
        pending = find_pending_worlds(bench.store, retry=bench.request.retry)
        worlds = [world for world in pending if bench.request.includes(world.name, world.id)]
        count.found = len(worlds)
        if not worlds:
            return count

        def keep(world: World, value: WorldCertificate | Rejected) -> bool:
            if isinstance(value, Rejected):
                bench.reject(WorldStep.ASSESS, world.id, world.name, world.source, value)
                count.rejected[value.reason.value] += 1
            else:
                bench.add(value)
                count.kept += 1
            return True

        with self.open_server() as server, self.open_server() as replay_server:
            bench.process(
                WorldStep.ASSESS,
                "world",
                worlds,
                name=lambda world: world.name,
                work=lambda world, meter: self._assess(world, meter, (server, replay_server)),
                keep=keep,
            )
        return count

    def _assess(self, record: World, meter: UsageMeter, servers: Sequence[WorldServer]) -> WorldCertificate | Rejected:
        bench, options = self.bench, self.bench.options
        world = load_world(record, bench.artifacts)
        settings = WorldGateSettings(calls_per_tool=options.gate_calls, min_change_share=options.min_changes)
        report = assess_world(world, servers[0], servers[1], settings)
        if (failure := report.failure) is not None and failure.reason is not None:
            return Rejected(reason=failure.reason, detail=f"{failure.gate}: {failure.detail}")
        with servers[0].load(world) as served:
            assessment = WorldAssessor(world=served, models=bench.models, options=options, meter=meter).assess()
        log = bench.artifacts.put(encode_lines(played_round.to_json() for played_round in assessment.rounds))
        reason, detail = assessment.decide(options.min_score)
        if reason is not None:
            return Rejected(reason=reason, detail=detail, log=log)
        names = bench.models.names
        return make_world_certificate(
            record,
            report,
            n_calls=options.gate_calls,
            rounds={
                "rounds": assessment.n_judged,
                "passed": assessment.count(CallVerdict.PASS),
                "warned": assessment.count(CallVerdict.WARNING),
                "failed": assessment.count(CallVerdict.FAIL),
                "tester": names[ModelRole.TESTER],
                "checker": names[ModelRole.CHECKER],
                "prompt": f"{TESTER_PROMPT} {CHECKER_PROMPT}",
                "log": log,
            },
        )
