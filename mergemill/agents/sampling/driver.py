"""Pending rollouts on the workers of a cluster; a single writer stores the results as they come."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from backends.cluster.base import Cluster, Notice, RecordKeeper
from backends.cluster.local import LocalCluster
from backends.services import Services
from core.config import Settings
from core.errors import CancelledRunError, MachineError, MergemillError, Transient
from core.settings.machine import ClusterSettings
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.queue import RolloutQueue
from mergemill.agents.sampling.request import PendingRollout
from mergemill.agents.sampling.upstream import check_upstream
from mergemill.execution.clusters import open_cluster
from samplers.gateway.process import Upstream
from samplers.rollouts.recording import FinishedRollout
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus
from taskdb.store import Store

log = logging.getLogger(__name__)

ListPending = Callable[[], tuple[int, list[PendingRollout]]]
"""Returns how many rollouts are planned, and those without a result."""


@dataclass(frozen=True)
class RolloutStarted(Notice):
    """Message that a rollout begins."""

    pending: PendingRollout


@dataclass(frozen=True)
class RolloutEnded:
    """Message that a rollout has ended: its records, or the exception that was raised."""

    pending: PendingRollout
    result: FinishedRollout | Exception
    answers: Mapping[str, int] = field(default_factory=dict)
    """How calls of simulated programs were answered in it, where a process of a cluster counts them."""


RolloutEvent = RolloutStarted | RolloutEnded
RunOne = Callable[[PendingRollout], FinishedRollout]
RunEvents = Callable[[PendingRollout], Iterator[RolloutEvent]]


def run_events(run_one: RunOne, pending: PendingRollout) -> Iterator[RolloutEvent]:
    """Run a rollout; yield its beginning and its end."""
    yield RolloutStarted(pending)
    yield run_to_end(run_one, pending)


def run_to_end(run_one: RunOne, pending: PendingRollout) -> RolloutEnded:
    """Run a rollout and return its end."""
    try:
        return RolloutEnded(pending, run_one(pending))
    except Exception as error:  # noqa: BLE001 - the driver distinguishes the kinds of failure
        return RolloutEnded(pending, error)


def open_threads(cluster: ClusterSettings, services: Services) -> LocalCluster:
    """Return threads of this machine for rollouts; none is begun ahead of the results that show an outage."""
    return LocalCluster(workers=cluster.workers, records_per_worker=1, stop=lambda _: services.sandbox.stop())


def run_on_nodes(
    make_driver: Callable[..., RolloutDriver],
    run: RunEvents,
    settings: Settings,
    progress: SamplingProgress,
    *,
    engine: bool,
    upstreams: Iterable[Upstream],
) -> None:
    """Run the rollouts that are pending on the nodes of a cluster, each of whose workers has gateways of its own.

    Args:
        make_driver: function that returns the driver, given `cluster`, `run` and `forget`.
        run: function that runs a rollout in a worker.
        settings: settings of this machine.
        progress: function that receives the messages of the cluster.
        engine: whether a worker needs a Docker engine.
        upstreams: the servers that the workers' gateways connect to, checked before anything is started.

    Raises:
        MachineError, Transient, InputError: as of `open_cluster`, `check_upstream` and `RolloutDriver.run_all`.
    """
    for upstream in upstreams:
        check_upstream(upstream)
    with open_cluster(settings, engine=engine, notify=progress.print_message) as cluster:
        make_driver(cluster=cluster, run=run, forget=lambda _: None).run_all()


@dataclass(frozen=True)
class RolloutKeeper(RecordKeeper[PendingRollout, RolloutEvent]):
    """Facts that the driver knows of the rollouts on their way."""

    progress: SamplingProgress

    def observe(self, result: RolloutEvent, place: str) -> None:
        """Show a rollout as running."""
        del place
        if isinstance(result, RolloutStarted):
            self.progress.begin(result.pending.plan)

    def end_record(self, record: PendingRollout, *, is_finished: bool) -> None:
        """Show it as running no more."""
        del is_finished
        self.progress.stop_showing(record.plan)

    def is_node_failure(self, result: RolloutEvent) -> bool:
        """Return whether infrastructure failed: engine, disk or network, or a node without the image."""
        if not isinstance(result, RolloutEnded):
            return False
        if isinstance(result.result, Exception):
            return isinstance(result.result, Transient | MachineError)
        return result.result.rollout.status is RolloutStatus.INFRASTRUCTURE

    def make_loss(self, record: PendingRollout, detail: str) -> RolloutEvent:
        """Return the failure of a rollout whose workers were lost each time."""
        return RolloutEnded(record, Transient(detail))

    def get_locality(self, record: PendingRollout) -> str:
        """Return the repository of the task, whose environments share layers."""
        return record.plan.name.rpartition("-")[0]


@dataclass(frozen=True, kw_only=True)
class RolloutDriver:
    """Runs rollouts.

    `list_pending` reads the database, `run` runs a rollout in a worker, `forget` removes the state that is kept for the
    next run of a plan that is stored now; `is_staged`: whether results may make further rollouts pending.
    """

    store: Store
    settings: Settings
    progress: SamplingProgress
    list_pending: ListPending
    cluster: Cluster
    run: RunEvents
    forget: Callable[[RolloutPlan], None]
    is_staged: bool

    def run_all(self) -> None:
        """Run the rollouts that are pending.

        Raises:
            CancelledRunError: Ctrl-C.
            Transient: database or disk fail.
        """
        settings = self.settings
        while pending := self._read_pending():
            queue = RolloutQueue(pending, retries=settings.rollout.retries, workers=settings.cluster.workers)
            while queue.has_more:  # what is to be tried again comes after all others
                self._run_queue(queue)
            if queue.is_outage:
                self.progress.report_outage(queue.n_failed_in_row)
            if not self.is_staged or not queue.n_finished or queue.is_outage:
                return

    def _read_pending(self) -> list[PendingRollout]:
        planned, pending = self.list_pending()
        self.progress.set_work(n_planned=planned, n_pending=len(pending))
        return pending

    def _run_queue(self, queue: RolloutQueue) -> None:
        """Run the rollouts of the queue until it is empty, and wait for those that run."""
        records = iter(queue.take, None)
        with closing(self.cluster.map(self.run, records, RolloutKeeper(self.progress))) as events:
            for event in events:
                if isinstance(event, RolloutEnded):
                    self.progress.simulated_answers.update(event.answers)
                    queue.settle(event.pending, self._store_result(event.result, event.pending))

    def _store_result(self, finished: FinishedRollout | Exception, pending: PendingRollout) -> Rollout | None:
        """Store a finished rollout with its trajectories, and forget the state that the record holds.

        Returns:
            The stored rollout, which is another driver's where that was faster; None after an error.
        """
        if isinstance(finished, CancelledRunError):
            raise finished
        if isinstance(finished, Exception):
            if not isinstance(finished, MergemillError):
                log.error("a rollout of %s failed through a bug", pending.plan.name, exc_info=finished)
            self.progress.report_failure(pending.plan, finished)
            return None
        if finished.second is not None:  # before the first, which decides whether the plan is pending
            second = self.store.add_once(finished.second.rollout, *finished.second.trajectories)
            self.progress.print_message(f"{second.name} {second.scaffold}: {second.status}, value {second.value}")
        rollout = self.store.add_once(finished.rollout, *finished.trajectories)  # another driver may have been faster
        if rollout.status is not RolloutStatus.INFRASTRUCTURE:
            self.forget(pending.plan)
        self.progress.report_result(rollout)
        return rollout
