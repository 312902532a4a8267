"""Rollouts in worker processes of other machines: each worker has an engine, programs and a gateway of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

from backends.cluster.nodes import make_picklable
from backends.sandbox.locks import hold_free_name
from core.config import Settings
from core.errors import MergemillError
from mergemill.nodes import add_stop, localize_settings
from mergemill.sampling.drive import RolloutEnded, RolloutEvent, RolloutStarted, run_events
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
        """Yield the events of a rollout, whose exceptions can be pickled."""
        try:
            worker = _open_worker(self.settings, self.request)
            events = run_events(worker.run, pending)
        except MergemillError as error:
            events = iter((RolloutStarted(pending), RolloutEnded(pending, error)))
        for event in events:
            if isinstance(event, RolloutEnded) and isinstance(event.result, Exception):
                yield replace(event, result=make_picklable(event.result))
            else:
                yield event


_samplers: dict[str, TaskSampler] = {}
_lock = Lock()


def _open_worker(settings: Settings, request: SampleRequest) -> TaskSampler:
    """Return the sampler of this process, opened by the first call; it is closed when the process is stopped.

    Raises:
        MachineError: no engine answers, or a program cannot be installed.
        Transient: the model server does not answer.
    """
    with _lock:
        if (key := settings.model_dump_json()) not in _samplers:
            own = localize_settings(settings)
            opened = ExitStack()
            store = opened.enter_context(Store.open(own.db, create=False, patience=own.db_patience))
            slot = opened.enter_context(hold_free_name(str(own.store_dir.resolve()), SLOTS))
            opening = open_sampler(request, own, store, (), SamplingProgress(), slot=slot)
            sampler = opened.enter_context(opening)
            _samplers[key] = replace(sampler, find_task=partial(store.get, Task))
            add_stop(sampler.shared.services.sandbox.stop)
            add_stop(opened.close)
        return _samplers[key]
