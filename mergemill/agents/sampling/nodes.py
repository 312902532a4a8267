"""Rollouts in worker processes of other machines: each worker has an engine, programs and a gateway of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Protocol

from backends.sandbox.locks import hold_free_name
from core.config import Settings
from core.errors import MergemillError
from mergemill.agents.sampling.driver import RolloutEnded, RolloutEvent, RolloutStarted, run_to_end
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import PendingRollout, SampleRequest, WorldSampleRequest
from mergemill.agents.sampling.scenario_rollout import SampledScenario
from mergemill.agents.sampling.scenario_sampler import load_subjects, open_scenario_sampler
from mergemill.agents.sampling.task_sampler import open_sampler
from mergemill.execution.nodes import add_stop, localize_settings
from samplers.rollouts.recording import FinishedRollout
from taskdb.artifacts import open_artifacts
from taskdb.records import Task
from taskdb.records.worlds import Scenario
from taskdb.store import Store

SLOTS = tuple(f"-{number}" for number in range(10_000))
"""Names of the folders with gateways' logs.

A worker takes the first that is free, with the files that a lost one left in it.
"""


class RolloutSampler(Protocol):
    """Services that a worker process runs rollouts with, one at a time."""

    def run(self, pending: PendingRollout) -> FinishedRollout:
        """Run a rollout and return its records."""
        ...

    def stop(self) -> None:
        """End the containers of the rollout that runs."""
        ...

    def count_answers(self) -> Mapping[str, int]:
        """Return how the calls of simulated programs were answered so far."""
        ...


@dataclass(frozen=True, kw_only=True)
class NodeRollouts(ABC):
    """Function of a map: runs a rollout in a worker process. `settings` are those of the driver."""

    settings: Settings

    def __call__(self, pending: PendingRollout) -> Iterator[RolloutEvent]:
        """Yield the events of a rollout."""
        yield RolloutStarted(pending)
        try:
            sampler = _open_worker(self)
        except MergemillError as error:
            yield RolloutEnded(pending, error)
            return
        before = sampler.count_answers()
        ended = run_to_end(sampler.run, pending)
        answers = Counter(sampler.count_answers())
        answers.subtract(before)
        yield replace(ended, answers=answers)

    @abstractmethod
    def open_sampler(self, own: Settings, store: Store, slot: str) -> AbstractContextManager[RolloutSampler]:
        """Open the services that this process runs rollouts with.

        Args:
            own: the settings as they are on this node.
            store: store to read from.
            slot: slot of this process, for folders of its own.

        Raises:
            MachineError: no engine answers, or a program cannot be installed.
            Transient: a model server does not answer.
        """


@dataclass(frozen=True, kw_only=True)
class NodeTaskRollouts(NodeRollouts):
    """Rollouts of tasks. `is_simulated`: whether any of them is simulated."""

    request: SampleRequest
    is_simulated: bool

    def open_sampler(self, own: Settings, store: Store, slot: str) -> AbstractContextManager[RolloutSampler]:
        """See NodeRollouts."""
        return open_sampler(
            self.request,
            own,
            store,
            SamplingProgress(),
            find_task=partial(store.get, Task),
            is_simulated=self.is_simulated,
            slot=slot,
        )


@dataclass(frozen=True, kw_only=True)
class NodeScenarioRollouts(NodeRollouts):
    """Rollouts of scenarios. `worlds`: how many worlds they have at most."""

    request: WorldSampleRequest
    worlds: int

    def open_sampler(self, own: Settings, store: Store, slot: str) -> AbstractContextManager[RolloutSampler]:
        """See NodeRollouts."""
        artifacts = open_artifacts(own.storage)

        @cache
        def find_subject(key: str) -> SampledScenario:
            return load_subjects(store, artifacts, [store.get(Scenario, key)])[key]

        return open_scenario_sampler(
            self.request, own, SamplingProgress(), find_subject=find_subject, worlds=self.worlds, slot=slot
        )


_samplers: dict[str, RolloutSampler] = {}


def _open_worker(rollouts: NodeRollouts) -> RolloutSampler:
    """Return the sampler of this process, opened by the first call; it is closed when the process is stopped.

    Raises:
        MachineError, Transient: as of `NodeRollouts.open_sampler`.
    """
    if (key := rollouts.settings.model_dump_json()) not in _samplers:
        own = localize_settings(rollouts.settings)
        with ExitStack() as opening:
            store = opening.enter_context(Store.open(own.storage.db, create=False, patience=own.cluster.db_patience))
            slot = opening.enter_context(hold_free_name(str(own.storage.store_dir.resolve()), SLOTS))
            sampler = opening.enter_context(rollouts.open_sampler(own, store, slot))
            add_stop(sampler.stop)
            add_stop(opening.pop_all().close)
        _samplers[key] = sampler
    return _samplers[key]
