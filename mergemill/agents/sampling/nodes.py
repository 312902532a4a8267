"""Rollouts in worker processes of other machines: each worker has an engine, programs and a gateway of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from backends.sandbox.locks import hold_free_name
from core.config import Settings
from core.errors import MergemillError
from mergemill.agents.sampling.driver import RolloutEnded, RolloutEvent, RolloutStarted, run_to_end
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import PendingRollout
from mergemill.agents.sampling.subject_source import SubjectSampler, SubjectSource
from mergemill.execution.nodes import add_stop, localize_settings
from taskdb.store import Store

SLOTS = tuple(f"-{number}" for number in range(10_000))
"""Names of the folders with gateways' logs.

A worker takes the first that is free, with the files that a lost one left in it.
"""


@dataclass(frozen=True, kw_only=True)
class NodeRollouts:
    """Function of a map: runs a rollout in a worker process. `settings` are those of the driver."""

    settings: Settings
    source: SubjectSource

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


_samplers: dict[str, SubjectSampler] = {}


def _open_worker(rollouts: NodeRollouts) -> SubjectSampler:
    """Return the sampler of this process, opened by the first call; it is closed when the process is stopped.

    Raises:
        MachineError, Transient: as of `SubjectSource.open_sampler`.
    """
    if (key := rollouts.settings.model_dump_json()) not in _samplers:
        own = localize_settings(rollouts.settings)
        with ExitStack() as opening:
            store = opening.enter_context(Store.open(own.storage.db, create=False, patience=own.cluster.db_patience))
            slot = opening.enter_context(hold_free_name(str(own.storage.store_dir.resolve()), SLOTS))
            sampler = opening.enter_context(rollouts.source.open_sampler(own, store, SamplingProgress(), slot=slot))
            add_stop(sampler.stop)
            add_stop(opening.pop_all().close)
        _samplers[key] = sampler
    return _samplers[key]
