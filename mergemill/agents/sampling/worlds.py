"""Run the pending rollouts of scenarios. All episodes of an invocation share a container of worlds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from core.config import Settings
from core.errors import InputError
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import WorldSampleRequest
from mergemill.agents.sampling.scenario_sampler import ScenarioSubjects
from mergemill.agents.sampling.subjects import sample_subjects
from mergemill.worlds.containers import OpenServer
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


def run_world_sampling(
    request: WorldSampleRequest,
    settings: Settings,
    progress: SamplingProgress,
    open_server: OpenServer | None = None,
) -> int:
    """Sample with the progress shown; arguments, result and errors as of `sample_scenarios`."""
    with progress:
        return sample_scenarios(request, settings, progress, open_server)


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

    def make_source(scenarios: Sequence[Scenario]) -> ScenarioSubjects:
        worlds = len({scenario.parent for scenario in scenarios})
        return ScenarioSubjects(request=request, worlds=worlds, open_server=open_server)

    select = partial(select_scenarios, request=request)
    return sample_subjects(request, settings, progress, select=select, make_source=make_source)


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
