"""Run the pending rollouts of scenarios. All episodes of an invocation share one container of worlds."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from core.config import OFF, Settings
from core.errors import InputError
from mergemill.agents.sampling.drive import RolloutDriver, open_threads, run_events, run_on_nodes
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import AttemptRequest, PendingRollout, list_pending
from mergemill.agents.sampling.scenario_rollout import (
    SampledScenario,
    ScenarioRolloutRun,
    WorldServices,
    make_user_plan,
)
from mergemill.agents.sampling.upstream import make_user_upstream, open_gateway
from mergemill.agents.sampling.world_scaffolds import WorldScaffold
from mergemill.execution.clusters import LOCAL, check_cluster_settings
from mergemill.execution.nodes import share_settings
from mergemill.execution.services import make_services
from mergemill.worlds.containers import OpenServer, open_world_container
from mergemill.worlds.records import load_scenario, load_world
from samplers.gateway.process import Budget, GatewayProcess, Upstream
from samplers.rollouts.recording import FinishedRollout, get_log_path
from taskdb.artifacts import Artifacts, open_artifacts, require_writable_store
from taskdb.queries.worlds import (
    find_current_scenarios,
    find_matches,
    find_scenario_certificate,
    list_scenarios,
    resolve_scenario,
    resolve_world,
)
from taskdb.records.rollouts import RolloutPlan
from taskdb.records.worlds import Scenario, World
from taskdb.store import Store
from worlds.definitions import Call
from worlds.server.host import WorldHost

if TYPE_CHECKING:
    from backends.services import Services


@dataclass(frozen=True, kw_only=True)
class WorldSampleRequest(AttemptRequest):
    """What is sampled: scenarios by scaffolds by attempts."""

    scaffolds: tuple[WorldScaffold, ...]
    worlds: tuple[str, ...] = ()
    """Names or ids of worlds, of which all scenarios are sampled."""
    only: tuple[str, ...] = ()
    """Names or ids of scenarios; without both, all scenarios."""


def run_world_sampling(request: WorldSampleRequest, settings: Settings, progress: SamplingProgress) -> int:
    """Sample with the progress shown; arguments, result and errors as of `sample_scenarios`."""
    with progress:
        return sample_scenarios(request, settings, progress)


def sample_scenarios(
    request: WorldSampleRequest,
    settings: Settings,
    progress: SamplingProgress,
    open_server: OpenServer | None = None,
) -> int:
    """Run the pending rollouts of a request and store them; return the exit code.

    Args:
        request: what is sampled.
        settings: database, store, engine, upstream and limits.
        progress: receives the events.
        open_server: starts the server of worlds on this machine; None for a container.

    Raises:
        InputError: there is no database or no such scenario, or a scenario is not certified.
        MachineError: no engine answers.
        Transient: a model cannot be reached, or database or disk fail.
        UsageError: a model is needed and no endpoint is named.
    """
    check_cluster_settings(settings)
    require_writable_store(settings)
    with Store.open(settings.db, create=False, writes=True) as store:
        scenarios = select_scenarios(store, request)
        find_pending = partial(list_pending, store, scenarios, request.scaffolds, request)
        planned, pending = find_pending()
        progress.set_work(n_planned=planned, n_pending=len(pending))
        if not pending:
            return progress.end()
        make_driver = partial(
            RolloutDriver,
            store=store,
            settings=settings,
            progress=progress,
            list_pending=find_pending,
            is_staged=request.attempts is None,
        )
        worlds = len({one.parent for one in scenarios})
        if settings.cluster != LOCAL:
            _sample_on_cluster(request, settings, progress, make_driver, worlds)
        else:
            subjects = load_subjects(store, open_artifacts(settings), scenarios)
            with open_scenario_sampler(
                request,
                settings,
                progress,
                find_subject=subjects.__getitem__,
                worlds=worlds,
                episodes=settings.workers,
                open_server=open_server,
            ) as sampler:
                make_driver(
                    cluster=open_threads(settings, sampler.services),
                    run=partial(run_events, sampler.run),
                    forget=sampler.forget,
                ).run_all()
        return progress.end()


def _sample_on_cluster(
    request: WorldSampleRequest,
    settings: Settings,
    progress: SamplingProgress,
    make_driver: Callable[..., RolloutDriver],
    worlds: int,
) -> None:
    """Run rollouts on the nodes of a cluster, each of whose workers has a container of worlds of its own."""
    from mergemill.agents.sampling.nodes import NodeScenarioRollouts  # noqa: PLC0415 - one machine needs none of it

    upstreams = []
    if any(scaffold.uses_model for scaffold in request.scaffolds):
        upstreams.append(Upstream.from_settings(settings))
    if settings.llm != OFF and any(scaffold.user_model for scaffold in request.scaffolds):
        upstreams.append(make_user_upstream(settings))
    run = NodeScenarioRollouts(settings=share_settings(settings), request=request, worlds=worlds)
    run_on_nodes(make_driver, run, settings, progress, engine=True, upstreams=upstreams)


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
    """Open what rollouts of scenarios need on this machine: worlds, and gateways where a model is needed.

    Args:
        request: what is sampled.
        settings: of this machine.
        progress: receives messages and the usage of the agents' gateway.
        find_subject: returns a scenario with its world by its id.
        worlds: that the scenarios have.
        episodes: that are played at once.
        open_server: starts the server of worlds; None for a container.
        slot: of a worker process of a cluster, whose logs are in folders of its own.

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
    """Runs rollouts of scenarios. `find_subject` returns one by its id; `scaffolds` are by name and version."""

    find_subject: Callable[[str], SampledScenario]
    scaffolds: Mapping[tuple[str, str], WorldScaffold]
    services: Services
    shared: WorldServices

    def run(self, one: PendingRollout) -> FinishedRollout:
        """Run a rollout and return its records."""
        scaffold = self._get_scaffold(one.plan)
        subject = self.find_subject(one.plan.task)
        return ScenarioRolloutRun(pending=one, subject=subject, scaffold=scaffold, shared=self.shared).run()

    def stop(self) -> None:
        """End the container of worlds."""
        self.services.sandbox.stop()

    def count_answers(self) -> Mapping[str, int]:
        """Return nothing: no program is simulated."""
        return {}

    def forget(self, plan: RolloutPlan) -> None:
        """Remove the gateways' logs of a plan whose record is stored."""
        user_plan = make_user_plan(plan, self._get_scaffold(plan))
        for gateway, one in ((self.shared.gateway, plan), (self.shared.user_gateway, user_plan)):
            if gateway is not None:
                get_log_path(gateway.log_dir, one).unlink(missing_ok=True)

    def _get_scaffold(self, plan: RolloutPlan) -> WorldScaffold:
        return self.scaffolds[plan.scaffold, plan.scaffold_version]


def select_scenarios(store: Store, request: WorldSampleRequest) -> list[Scenario]:
    """Return the scenarios that a request selects, by name.

    Raises:
        InputError: there is none, or one that is named is not certified.
    """
    found: dict[str, Scenario] = {}
    for word in request.worlds:
        world = resolve_world(store, word)
        found |= {one.id: one for one in list_scenarios(store, world, certified=not request.uncertified)}
    for word in request.only:
        for one in _find_named(store, word, request):
            found[one.id] = one
    if not request.worlds and not request.only:
        found = {one.id: one for one in find_current_scenarios(store, certified=not request.uncertified)}
    if not found:
        raise InputError(
            "no certified scenario is selected",
            advice="`mergemill worlds list` counts them by world; see --uncertified",
        )
    return sorted(found.values(), key=lambda one: (one.name, one.id))


def _find_named(store: Store, word: str, request: WorldSampleRequest) -> Sequence[Scenario]:
    if not find_matches(store, "scenario", word) and find_matches(store, "world", word):
        return list_scenarios(store, resolve_world(store, word), certified=not request.uncertified)
    scenario = resolve_scenario(store, word)
    if not request.uncertified and find_scenario_certificate(store, scenario) is None:
        advice = "mergemill worlds scenarios, or --uncertified to sample it anyway"
        raise InputError(f"{scenario.name} is not certified", advice=advice)
    return [scenario]


def load_subjects(store: Store, artifacts: Artifacts, scenarios: Sequence[Scenario]) -> dict[str, SampledScenario]:
    """Return id -> scenario with its world, for records of scenarios.

    The worlds have names with their ids, as two of a database may have one name.

    Raises:
        InputError: an artifact is missing or damaged.
    """
    records = store.get_many(World, sorted({one.parent for one in scenarios}))
    worlds = {
        key: replace(load_world(record, artifacts), name=f"{record.name}-{key[:12]}") for key, record in records.items()
    }
    found = {}
    for record in scenarios:
        world = worlds[record.parent]
        certificate = find_scenario_certificate(store, record)
        solution = json.loads(artifacts.get(certificate.solution)) if certificate else []
        found[record.id] = SampledScenario(
            definition=replace(load_scenario(record, artifacts), world=world.name),
            world=world,
            solution=tuple(Call(**call) for call in solution),
        )
    return found


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
    """Open what all rollouts share: the gateways that are needed, and the host of worlds."""
    with contextlib.ExitStack() as opened:
        gateway: GatewayProcess | None = None
        user_gateway: GatewayProcess | None = None
        if any(scaffold.uses_model for scaffold in request.scaffolds):
            gateway, _ = opened.enter_context(open_gateway(settings, progress, slot=slot))
        if any(scaffold.user_model for scaffold in request.scaffolds):
            user_gateway = gateway
            if settings.llm != OFF:
                users = make_user_upstream(settings)
                user_gateway, _ = opened.enter_context(open_gateway(settings, progress, users, slot=slot))
        yield WorldServices(
            host=opened.enter_context(WorldHost(open_server)),
            artifacts=services.artifacts,
            clock=services.clock,
            gateway=gateway,
            user_gateway=user_gateway,
            budget=Budget(
                requests=settings.rollout_requests, tokens=settings.rollout_tokens, cost=settings.rollout_cost
            ),
            seconds=settings.rollout_seconds,
            max_steps=(
                settings.rollout_turns if "rollout_turns" in settings.model_fields_set else settings.worlds_max_steps
            ),
            credit=request.credit,
        )
