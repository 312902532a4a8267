"""Rollouts in worker processes of other machines: each worker has an engine, programs and a gateway of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from backends.sandbox.locks import hold_free_name
from core.config import Settings
from core.errors import MergemillError
from mergemill.nodes import add_stop, localize_settings
from mergemill.sampling.drive import RolloutEnded, RolloutEvent, RolloutStarted, run_to_end
from mergemill.sampling.progress import SamplingProgress
from mergemill.sampling.request import PendingRollout, SampleRequest
from mergemill.sampling.run import TaskSampler, open_sampler
from taskdb.records import Task
from taskdb.store import Store

SLOTS = tuple(f"-{number}" for number in range(10_000))
"""Names of the folders with gateways' logs; a worker takes the first that is free, with what a lost one left in it."""


@dataclass(frozen=True)
class NodeRollouts:
    """Function of a map: runs a rollout in a worker process."""

    settings: Settings
    request: SampleRequest

    def __call__(self, pending: PendingRollout) -> Iterator[RolloutEvent]:
        """Yield the events of a rollout."""
        yield RolloutStarted(pending)
        try:
            sampler = _open_worker(self.settings, self.request)
        except MergemillError as error:
            yield RolloutEnded(pending, error)
        else:
            yield run_to_end(sampler.run, pending)


_samplers: dict[str, TaskSampler] = {}


def _open_worker(settings: Settings, request: SampleRequest) -> TaskSampler:
    """Return the sampler of this process, opened by the first call; it is closed when the process is stopped.

    Raises:
        MachineError: no engine answers, or a program cannot be installed.
        Transient: the model server does not answer.
    """
    if (key := settings.model_dump_json()) not in _samplers:
        own = localize_settings(settings)
        with ExitStack() as opening:
            store = opening.enter_context(Store.open(own.db, create=False, patience=own.db_patience))
            slot = opening.enter_context(hold_free_name(str(own.store_dir.resolve()), SLOTS))
            sampler = opening.enter_context(open_sampler(request, own, store, (), SamplingProgress(), slot=slot))
            add_stop(sampler.shared.services.sandbox.stop)
            add_stop(opening.pop_all().close)
        _samplers[key] = replace(sampler, find_task=partial(store.get, Task))
    return _samplers[key]
