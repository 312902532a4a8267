"""Rollouts of scenarios on this machine, and the services that they need.

Worlds, and gateways where a model is needed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from core.config import Settings
from core.settings.models import OFF
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import PendingRollout, WorldSampleRequest
from mergemill.agents.sampling.scenario_rollout import (
    SampledScenario,
    ScenarioRolloutRun,
    WorldServices,
    make_user_plan,
)
from mergemill.agents.sampling.upstream import make_user_upstream, open_gateway
from mergemill.agents.sampling.world_scaffolds import WorldScaffold
from mergemill.execution.services import make_services
from mergemill.worlds.containers import OpenServer, open_world_container
from mergemill.worlds.records import load_scenario, load_world
from samplers.gateway.process import Budget, GatewayProcess
from samplers.rollouts.recording import FinishedRollout, get_log_path
from taskdb.artifacts import Artifacts
from taskdb.queries.worlds import find_scenario_certificate
from taskdb.records.rollouts import RolloutPlan
from taskdb.records.worlds import Scenario, World
from taskdb.store import Store
from worlds.definitions import Call
from worlds.server.host import WorldHost

if TYPE_CHECKING:
    from backends.services import Services


@contextlib.contextmanager
def open_scenario_sampler(
    request: WorldSampleRequest,
    settings: Settings,
    progress: SamplingProgress,
    *,
    find_subject: Callable[[str], SampledScenario],
    worlds: int,
    episodes: int = 1,
    open_server: OpenServer | None = None,
    slot: str = "",
) -> Iterator[ScenarioSampler]:
    """Open the services that rollouts of scenarios need on this machine: worlds, and gateways where a model is needed.

    Args:
        request: the selection that is sampled.
        settings: settings of this machine.
        progress: function that receives messages and the usage of the agents' gateway.
        find_subject: function that returns a scenario with its world by its id.
        worlds: worlds that the scenarios have.
        episodes: episodes that are played at once.
        open_server: function that starts the server of worlds; None for a container.
        slot: slot of a worker process of a cluster, whose logs are in folders of its own.

    Raises:
        MachineError, Transient, UsageError: as of `sample_scenarios`.
    """
    services = make_services(settings, engine=open_server is None)
    start = open_server or partial(open_world_container, services, worlds=worlds, episodes=episodes)
    with services.images.hold(), _open_shared(request, settings, services, progress, start, slot=slot) as shared:
        yield ScenarioSampler(
            find_subject=find_subject,
            scaffolds={(scaffold.name, scaffold.version): scaffold for scaffold in request.scaffolds},
            services=services,
            shared=shared,
        )


@dataclass(frozen=True, kw_only=True)
class ScenarioSampler:
    """Runs rollouts of scenarios. `find_subject` returns a scenario by its id; `scaffolds` are by name and version."""

    find_subject: Callable[[str], SampledScenario]
    scaffolds: Mapping[tuple[str, str], WorldScaffold]
    services: Services
    shared: WorldServices

    def run(self, pending: PendingRollout) -> FinishedRollout:
        """Run a rollout and return its records."""
        scaffold = self._get_scaffold(pending.plan)
        subject = self.find_subject(pending.plan.task)
        return ScenarioRolloutRun(pending=pending, subject=subject, scaffold=scaffold, shared=self.shared).run()

    def stop(self) -> None:
        """End the container of worlds."""
        self.services.sandbox.stop()

    def count_answers(self) -> Mapping[str, int]:
        """Return nothing: no program is simulated."""
        return {}

    def forget(self, plan: RolloutPlan) -> None:
        """Remove the gateways' logs of a plan whose record is stored."""
        user_plan = make_user_plan(plan, self._get_scaffold(plan))
        for gateway, rollout_plan in ((self.shared.gateway, plan), (self.shared.user_gateway, user_plan)):
            if gateway is not None:
                get_log_path(gateway.log_dir, rollout_plan).unlink(missing_ok=True)

    def _get_scaffold(self, plan: RolloutPlan) -> WorldScaffold:
        return self.scaffolds[plan.scaffold, plan.scaffold_version]


def load_subjects(store: Store, artifacts: Artifacts, scenarios: Sequence[Scenario]) -> dict[str, SampledScenario]:
    """Return id -> scenario with its world, for records of scenarios.

    The worlds have names with their ids, as two of a database may have the same name.

    Raises:
        InputError: an artifact is missing or damaged.
    """
    records = store.get_many(World, sorted({scenario.parent for scenario in scenarios}))
    worlds = {
        key: replace(load_world(record, artifacts), name=f"{record.name}-{key[:12]}") for key, record in records.items()
    }
    subjects = {}
    for record in scenarios:
        world = worlds[record.parent]
        certificate = find_scenario_certificate(store, record)
        solution = json.loads(artifacts.get(certificate.solution)) if certificate else []
        subjects[record.id] = SampledScenario(
            definition=replace(load_scenario(record, artifacts), world=world.name),
            world=world,
            solution=tuple(Call(**call) for call in solution),
        )
    return subjects


@contextlib.contextmanager
def _open_shared(
    request: WorldSampleRequest,
    settings: Settings,
    services: Services,
    progress: SamplingProgress,
    open_server: OpenServer,
    *,
    slot: str,
) -> Iterator[WorldServices]:
    """Open the services that all rollouts share: the gateways that are needed, and the host of worlds."""
    with contextlib.ExitStack() as opened:
        gateway: GatewayProcess | None = None
        user_gateway: GatewayProcess | None = None
        if any(scaffold.uses_model for scaffold in request.scaffolds):
            gateway, _ = opened.enter_context(open_gateway(settings, progress, slot=slot))
        if any(scaffold.user_model for scaffold in request.scaffolds):
            user_gateway = gateway
            if settings.llm.url != OFF:
                users = make_user_upstream(settings.llm, settings.upstream)
                user_gateway, _ = opened.enter_context(open_gateway(settings, progress, users, slot=slot))
        yield WorldServices(
            host=opened.enter_context(WorldHost(open_server)),
            artifacts=services.artifacts,
            clock=services.clock,
            gateway=gateway,
            user_gateway=user_gateway,
            budget=Budget(
                requests=settings.rollout.requests, tokens=settings.rollout.tokens, cost=settings.rollout.cost
            ),
            seconds=settings.rollout.seconds,
            max_steps=(
                settings.rollout.turns if "turns" in settings.rollout.model_fields_set else settings.worlds.max_steps
            ),
            credit=request.credit,
        )
