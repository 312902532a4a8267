"""Scenarios as subjects on this machine, and the services that their rollouts need.

Worlds, and gateways where a model is needed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from backends.services import Services
from core.config import Settings
from core.settings.models import OFF
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import WorldSampleRequest
from mergemill.agents.sampling.scenario_environment import SampledScenario, ScenarioEnvironment, make_user_plan
from mergemill.agents.sampling.subject_source import SubjectSampler, SubjectSource
from mergemill.agents.sampling.upstream import make_user_upstream, open_gateway
from mergemill.agents.sampling.world_scaffolds import WorldScaffold
from mergemill.execution.services import make_services
from mergemill.worlds.containers import OpenServer, open_world_container
from mergemill.worlds.records import load_scenario, load_world
from samplers.gateway.process import Budget, GatewayProcess, Upstream
from samplers.rollouts.recording import get_log_path
from samplers.rollouts.run import RolloutServices
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.queries.worlds import find_scenario_certificate
from taskdb.records.base import Record
from taskdb.records.rollouts import RolloutPlan
from taskdb.records.worlds import Scenario, World
from taskdb.store import Store
from worlds.definitions import Call
from worlds.server.host import WorldHost

FindScenario = Callable[[str], SampledScenario]


@dataclass(frozen=True, kw_only=True)
class ScenarioSubjects(SubjectSource):
    """Scenarios of a request. All episodes of a sampler share a container of worlds."""

    request: WorldSampleRequest
    worlds: int
    """Worlds that the scenarios have."""
    open_server: OpenServer | None = None
    """Starts the server of worlds on this machine; None for a container."""

    def list_upstreams(self, settings: Settings) -> list[Upstream]:
        """See SubjectSource."""
        upstreams = []
        if any(scaffold.uses_model for scaffold in self.request.scaffolds):
            upstreams.append(Upstream.from_settings(settings.upstream, settings.llm))
        if self._has_own_users(settings):
            upstreams.append(make_user_upstream(settings.llm, settings.upstream))
        return upstreams

    def needs_engine(self, settings: Settings) -> bool:
        """See SubjectSource."""
        del settings
        return True

    @contextlib.contextmanager
    def open_sampler(
        self,
        settings: Settings,
        store: Store,
        progress: SamplingProgress,
        *,
        records: Sequence[Record] | None = None,
        slot: str = "",
    ) -> Iterator[SubjectSampler]:
        """See SubjectSource."""
        find = _make_finder(store, open_artifacts(settings.storage), records)
        # A worker of a cluster runs a rollout at a time, the threads of this machine several.
        episodes = settings.cluster.workers if records is not None else 1
        services = make_services(settings, engine=self.open_server is None)
        start = self.open_server or partial(open_world_container, services, worlds=self.worlds, episodes=episodes)
        with contextlib.ExitStack() as opened:
            opened.enter_context(services.images.hold())
            gateway, user_gateway = self._open_gateways(opened, settings, progress, slot)
            yield SubjectSampler(
                find_subject=lambda key: find(key).make_subject(),
                scaffolds=self.request.scaffolds,
                environment=ScenarioEnvironment(
                    host=opened.enter_context(WorldHost(start)),
                    artifacts=services.artifacts,
                    find_scenario=find,
                    user_gateway=user_gateway,
                    seconds=settings.rollout.seconds,
                    max_steps=_choose_max_steps(settings),
                ),
                shared=self._make_shared(settings, services, gateway),
                services=services,
                list_logs=partial(self._list_logs, gateway, user_gateway),
            )

    def _has_own_users(self, settings: Settings) -> bool:
        """Return whether users are played by a model at another endpoint than the agents'."""
        return settings.llm.url != OFF and any(scaffold.user_model for scaffold in self.request.scaffolds)

    def _open_gateways(
        self, opened: contextlib.ExitStack, settings: Settings, progress: SamplingProgress, slot: str
    ) -> tuple[GatewayProcess | None, GatewayProcess | None]:
        """Return the gateways in front of the agents' and of the users' model, as far as they are needed."""
        gateway: GatewayProcess | None = None
        if any(scaffold.uses_model for scaffold in self.request.scaffolds):
            gateway, _ = opened.enter_context(open_gateway(settings, progress, slot=slot))
        if not self._has_own_users(settings):
            return gateway, gateway if any(scaffold.user_model for scaffold in self.request.scaffolds) else None
        users = make_user_upstream(settings.llm, settings.upstream)
        user_gateway, _ = opened.enter_context(open_gateway(settings, progress, users, slot=slot))
        return gateway, user_gateway

    def _make_shared(self, settings: Settings, services: Services, gateway: GatewayProcess | None) -> RolloutServices:
        limits = settings.rollout
        return RolloutServices(
            artifacts=services.artifacts,
            clock=services.clock,
            gateway=gateway,
            budget=Budget(requests=limits.requests, tokens=limits.tokens, cost=limits.cost),
            credit=self.request.credit,
        )

    def _list_logs(
        self, gateway: GatewayProcess | None, user_gateway: GatewayProcess | None, plan: RolloutPlan
    ) -> list[Path]:
        user_plan = make_user_plan(plan, self._get_scaffold(plan))
        pairs = ((gateway, plan), (user_gateway, user_plan))
        return [get_log_path(opened.log_dir, logged) for opened, logged in pairs if opened is not None]

    def _get_scaffold(self, plan: RolloutPlan) -> WorldScaffold:
        wanted = (plan.scaffold, plan.scaffold_version)
        return next(scaffold for scaffold in self.request.scaffolds if (scaffold.name, scaffold.version) == wanted)


def _choose_max_steps(settings: Settings) -> int:
    """Return the limit of turns where it is set, else that of worlds."""
    has_limit = "turns" in settings.rollout.model_fields_set
    return settings.rollout.turns if has_limit else settings.worlds.max_steps


def _make_finder(store: Store, artifacts: Artifacts, records: Sequence[Record] | None) -> FindScenario:
    """Return the function that finds scenarios by their ids: among all that are loaded now, or one by one."""
    if records is not None:
        scenarios = [record for record in records if isinstance(record, Scenario)]
        return load_scenarios(store, artifacts, scenarios).__getitem__

    @cache
    def find(key: str) -> SampledScenario:
        return load_scenarios(store, artifacts, [store.get(Scenario, key)])[key]

    return find


def load_scenarios(store: Store, artifacts: Artifacts, scenarios: Sequence[Scenario]) -> dict[str, SampledScenario]:
    """Return id -> scenario with its world, for records of scenarios.

    The worlds have names with their ids, as two of a database may have the same name.

    Raises:
        InputError: an artifact is missing or damaged.
    """
    records = store.get_many(World, sorted({scenario.parent for scenario in scenarios}))
    worlds = {
        key: replace(load_world(record, artifacts), name=f"{record.name}-{key[:12]}") for key, record in records.items()
    }
    scenarios_by_id = {}
    for record in scenarios:
        world = worlds[record.parent]
        certificate = find_scenario_certificate(store, record)
        solution = json.loads(artifacts.get(certificate.solution)) if certificate else []
        scenarios_by_id[record.id] = SampledScenario(
            id=record.id,
            definition=replace(load_scenario(record, artifacts), world=world.name),
            world=world,
            solution=tuple(Call(**call) for call in solution),
        )
    return scenarios_by_id
