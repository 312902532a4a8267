"""Pending rollouts on worker threads; one writer stores the results as they come."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from core.config import Settings
from core.errors import CancelledRunError, MergemillError
from mergemill.sampling.progress import SamplingProgress
from mergemill.sampling.queue import RolloutQueue
from mergemill.sampling.request import PendingRollout
from samplers.rollouts.recording import FinishedRollout
from taskdb.rollouts import Rollout, RolloutPlan, RolloutStatus
from taskdb.store import Store

log = logging.getLogger(__name__)

WAIT_SECONDS = 1.0
"""Longest wait for a result before Ctrl-C is noticed."""
ListPending = Callable[[], tuple[int, list[PendingRollout]]]
"""Returns how many rollouts are planned, and those without a result."""


@dataclass(frozen=True, kw_only=True)
class RolloutDriver:
    """Runs rollouts.

    `list_pending` reads the database, `run_one` runs a rollout, `forget` removes what is kept for the next run of a
    plan that is stored now, `stop` ends what runs; `is_staged`: whether results may make further rollouts pending.
    """

    store: Store
    settings: Settings
    progress: SamplingProgress
    list_pending: ListPending
    run_one: Callable[[PendingRollout], FinishedRollout]
    forget: Callable[[RolloutPlan], None]
    stop: Callable[[], None]
    is_staged: bool

    def run(self) -> None:
        """Run what is pending.

        Raises:
            CancelledRunError: Ctrl-C.
            Transient: database or disk fail.
        """
        settings = self.settings
        while pending := self._read_pending():
            queue = RolloutQueue(pending, retries=settings.rollout_retries, workers=settings.workers)
            self._run_all(queue)
            if queue.is_outage:
                self.progress.report_outage(queue.n_failed_in_row)
            if not self.is_staged or not queue.n_finished or queue.is_outage:
                return

    def _read_pending(self) -> list[PendingRollout]:
        planned, pending = self.list_pending()
        self.progress.set_work(n_planned=planned, n_pending=len(pending))
        return pending

    def _run_all(self, queue: RolloutQueue) -> None:
        """Run what the queue gives on worker threads."""
        workers = self.settings.workers
        running: dict[Future[FinishedRollout], PendingRollout] = {}
        threads = ThreadPoolExecutor(workers, thread_name_prefix="mergemill-rollout")
        try:
            while True:
                while len(running) < workers and (one := queue.take()) is not None:
                    running[threads.submit(self._track, one)] = one
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED, timeout=WAIT_SECONDS)
                for future in done:
                    one = running.pop(future)
                    queue.settle(one, self._store_result(future, one))
        except BaseException:
            self.stop()
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def _track(self, one: PendingRollout) -> FinishedRollout:
        with self.progress.track(one.plan):
            return self.run_one(one)

    def _store_result(self, future: Future[FinishedRollout], one: PendingRollout) -> Rollout | None:
        """Store a finished rollout with its trajectories, and forget what the record holds.

        Returns:
            The stored rollout, which is another driver's where that was faster; None after an error.
        """
        try:
            finished = future.result()
        except CancelledRunError:
            raise
        except MergemillError as error:
            self.progress.report_failure(one.plan, error)
            return None
        except Exception as error:
            log.exception("a rollout of %s failed through a bug", one.plan.name)
            self.progress.report_failure(one.plan, error)
            return None
        rollout = self.store.add_once(finished.rollout, *finished.trajectories)  # another driver may have been faster
        if rollout.status is not RolloutStatus.INFRASTRUCTURE:
            self.forget(one.plan)
        self.progress.report_result(rollout)
        return rollout
