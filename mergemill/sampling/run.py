"""Run the pending rollouts of a request on worker threads; one writer stores the results as they come.

Rollouts that a killed driver left behind begin again; what their models had answered is read from the gateway's log
instead of being paid again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

import verifiers
from backends.services import Services
from core.config import Settings
from core.errors import CancelledRunError, MergemillError
from mergemill.images.fetch import enable_fetching
from mergemill.sampling.programs import make_program_store
from mergemill.sampling.progress import SamplingProgress
from mergemill.sampling.queue import RolloutQueue
from mergemill.sampling.request import PendingRollout, SampleRequest, list_pending, select_tasks
from mergemill.sampling.upstream import open_gateway
from mergemill.services import make_services
from samplers.gateway.process import Budget
from samplers.rollouts.run import FinishedRollout, RolloutRun, RolloutServices, TaskOracle, get_log_path
from samplers.scaffolds.base import AgentLimits
from taskdb.artifacts import require_writable_folder
from taskdb.records import Task
from taskdb.rollouts import Rollout, RolloutStatus
from taskdb.store import Store

log = logging.getLogger(__name__)

WAIT_SECONDS = 1.0
"""Longest wait for a result before Ctrl-C is noticed."""


def run_sampling(request: SampleRequest, settings: Settings, progress: SamplingProgress) -> int:
    """Sample with the progress shown; arguments, result and errors as of `sample`."""
    with progress:
        return sample(request, settings, progress)


def sample(request: SampleRequest, settings: Settings, progress: SamplingProgress) -> int:
    """Run the pending rollouts of a request and store them; return the exit code.

    Raises:
        InputError: there is no database or no such task, or a task is not certified.
        MachineError: no engine answers, or a program cannot be installed.
        Transient: the model cannot be reached, or database or disk fail.
        UsageError: a scaffold needs a model and none is given.
    """
    require_writable_folder(settings.store_dir)
    with Store.open(settings.db, create=False, writes=True) as store:
        tasks = select_tasks(store, request)
        planned, pending = list_pending(store, tasks, request)
        progress.set_work(n_planned=planned, n_pending=len(pending))
        if not pending:
            return progress.end()
        services = enable_fetching(make_services(settings, engine=True), store)
        with services.images.hold(), _open_shared(request, settings, services, progress) as shared:
            # another driver, for whose end this one waited, may have done it
            planned, pending = list_pending(store, tasks, request)
            progress.set_work(n_planned=planned, n_pending=len(pending))
            for scaffold in request.scaffolds:
                shared.programs.ensure(scaffold.program)
            while pending:
                queue = RolloutQueue(pending, retries=settings.rollout_retries, workers=settings.workers)
                _run_all(queue, store, shared, settings, progress)
                if queue.is_outage:
                    progress.report_outage(queue.n_failed_in_row)
                if request.attempts is not None or not queue.n_finished or queue.is_outage:
                    break
                planned, pending = list_pending(store, tasks, request)
                progress.set_work(n_planned=planned, n_pending=len(pending))
        return progress.end()


def make_oracle(task: Task, services: Services) -> TaskOracle:
    """Return the oracle of a task for samplers."""
    reward = verifiers.select_reward(task)
    return TaskOracle(
        submission=reward.submission,
        grade=lambda submission: verifiers.grade(task, services, submission),
        make_gold=lambda: reward.make_gold(task, services),
    )


@contextlib.contextmanager
def _open_shared(
    request: SampleRequest, settings: Settings, services: Services, progress: SamplingProgress
) -> Iterator[RolloutServices]:
    """Open what all rollouts share; a gateway where a scaffold needs one."""
    make = partial(
        RolloutServices,
        services=services,
        programs=make_program_store(services),
        limits=AgentLimits(seconds=settings.rollout_seconds, turns=settings.rollout_turns),
        budget=Budget(requests=settings.rollout_requests, tokens=settings.rollout_tokens, cost=settings.rollout_cost),
        credit=request.credit,
    )
    if not any(scaffold.uses_model for scaffold in request.scaffolds):
        yield make(gateway=None, agent_socket=None)
        return
    with open_gateway(settings, progress) as (gateway, agent_socket):
        yield make(gateway=gateway, agent_socket=agent_socket)


def _run_all(
    queue: RolloutQueue, store: Store, shared: RolloutServices, settings: Settings, progress: SamplingProgress
) -> None:
    """Run what the queue gives on worker threads; one writer stores the results as they come."""
    running: dict[Future[FinishedRollout], PendingRollout] = {}
    threads = ThreadPoolExecutor(settings.workers, thread_name_prefix="mergemill-rollout")
    try:
        while True:
            while len(running) < settings.workers and (one := queue.take()) is not None:
                running[threads.submit(_run_one, one, shared, progress)] = one
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED, timeout=WAIT_SECONDS)
            for future in done:
                one = running.pop(future)
                queue.settle(one, _store_result(future, one, store, shared, progress))
    except BaseException:
        shared.services.sandbox.stop()
        raise
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _run_one(one: PendingRollout, shared: RolloutServices, progress: SamplingProgress) -> FinishedRollout:
    with progress.track(one.plan):
        oracle = make_oracle(one.task, shared.services)
        return RolloutRun(
            plan=one.plan, task=one.task, scaffold=one.scaffold, oracle=oracle, shared=shared, retry=one.retry
        ).run()


def _store_result(
    future: Future[FinishedRollout],
    one: PendingRollout,
    store: Store,
    shared: RolloutServices,
    progress: SamplingProgress,
) -> Rollout | None:
    """Store a finished rollout with its trajectories, and remove the gateway's log, which the record holds.

    Returns:
        The stored rollout, which is another driver's where that was faster; None after an error.
    """
    try:
        finished = future.result()
    except CancelledRunError:
        raise
    except MergemillError as error:
        progress.report_failure(one.plan, error)
        return None
    except Exception as error:
        log.exception("a rollout of %s failed through a bug", one.plan.name)
        progress.report_failure(one.plan, error)
        return None
    rollout = store.add_once(finished.rollout, *finished.trajectories)  # a driver elsewhere may have been faster
    if shared.gateway is not None and rollout.status is not RolloutStatus.INFRASTRUCTURE:
        get_log_path(shared.gateway.log_dir, one.plan).unlink(missing_ok=True)
    progress.report_result(rollout)
    return rollout
