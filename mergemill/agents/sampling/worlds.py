"""Run the pending rollouts of scenarios. All episodes of an invocation share a container of worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from core.config import Settings
from core.errors import InputError
from core.settings.models import OFF
from mergemill.agents.sampling.driver import RolloutDriver, open_threads, run_events, run_on_nodes
from mergemill.agents.sampling.nodes import NodeScenarioRollouts
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import WorldSampleRequest, list_pending
from mergemill.agents.sampling.scenario_sampler import load_subjects, open_scenario_sampler
from mergemill.agents.sampling.upstream import make_user_upstream
from mergemill.execution.clusters import LOCAL, check_cluster_settings
from mergemill.execution.nodes import share_settings
from mergemill.worlds.containers import OpenServer
from samplers.gateway.process import Upstream
from taskdb.artifacts import open_artifacts, require_writable_store
from taskdb.queries.worlds import (
    find_current_scenarios,
    find_matches,
    find_scenario_certificate,
    list_scenarios,
    resolve_scenario,
    resolve_world,
)
from taskdb.records.worlds import Scenario
from taskdb.store import Store

if TYPE_CHECKING:
    pass


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
        request: the selection that is sampled.
        settings: database, store, engine, upstream and limits.
        progress: function that receives the events.
        open_server: function that starts the server of worlds on this machine; None for a container.

    Raises:
        InputError: there is no database or no such scenario, or a scenario is not certified.
        MachineError: no engine answers.
        Transient: a model cannot be reached, or database or disk fail.
        UsageError: a model is needed and no endpoint is named.
    """
    check_cluster_settings(settings.cluster)
    require_writable_store(settings.storage)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
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
        worlds = len({scenario.parent for scenario in scenarios})
        if settings.cluster.address != LOCAL:
            _sample_on_cluster(request, settings, progress, make_driver, worlds)
        else:
            subjects = load_subjects(store, open_artifacts(settings.storage), scenarios)
            with open_scenario_sampler(
                request,
                settings,
                progress,
                find_subject=subjects.__getitem__,
                worlds=worlds,
                episodes=settings.cluster.workers,
                open_server=open_server,
            ) as sampler:
                make_driver(
                    cluster=open_threads(settings.cluster, sampler.services),
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
    upstreams = []
    if any(scaffold.uses_model for scaffold in request.scaffolds):
        upstreams.append(Upstream.from_settings(settings.upstream, settings.llm))
    if settings.llm.url != OFF and any(scaffold.user_model for scaffold in request.scaffolds):
        upstreams.append(make_user_upstream(settings.llm, settings.upstream))
    run = NodeScenarioRollouts(settings=share_settings(settings), request=request, worlds=worlds)
    run_on_nodes(make_driver, run, settings, progress, engine=True, upstreams=upstreams)


def select_scenarios(store: Store, request: WorldSampleRequest) -> list[Scenario]:
    """Return the scenarios that a request selects, by name.

    Raises:
        InputError: there is none, or a scenario that is named is not certified.
    """
    scenarios: dict[str, Scenario] = {}
    for word in request.worlds:
        world = resolve_world(store, word)
        scenarios |= {
            scenario.id: scenario for scenario in list_scenarios(store, world, certified=not request.uncertified)
        }
    for word in request.only:
        for scenario in _find_named(store, word, request):
            scenarios[scenario.id] = scenario
    if not request.worlds and not request.only:
        scenarios = {
            scenario.id: scenario for scenario in find_current_scenarios(store, certified=not request.uncertified)
        }
    if not scenarios:
        raise InputError(
            "no certified scenario is selected",
            advice="`mergemill worlds list` counts them by world; see --uncertified",
        )
    return sorted(scenarios.values(), key=lambda scenario: (scenario.name, scenario.id))


def _find_named(store: Store, word: str, request: WorldSampleRequest) -> Sequence[Scenario]:
    if not find_matches(store, "scenario", word) and find_matches(store, "world", word):
        return list_scenarios(store, resolve_world(store, word), certified=not request.uncertified)
    scenario = resolve_scenario(store, word)
    if not request.uncertified and find_scenario_certificate(store, scenario) is None:
        advice = "mergemill worlds scenarios, or --uncertified to sample it anyway"
        raise InputError(f"{scenario.name} is not certified", advice=advice)
    return [scenario]
