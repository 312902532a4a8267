"""Sampling of agents on tasks: which rollouts are pending, workers that run them, and one writer that stores them.

The database is the queue: a plan is pending until a rollout of it is stored that ended by the agent's doing. Rollouts
that a killed driver left behind begin again; what their models had answered is read from the gateway's log instead of
being paid again.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import requests

import verifiers
from backends.llm.meter import TokenPrices
from backends.sandbox.locks import hold_machine_lock
from backends.services import Services
from core.config import Settings
from core.errors import CancelledRunError, InputError, MergemillError, Transient, UsageError
from mergemill.images.fetch import enable_fetching
from mergemill.programs import make_program_store
from mergemill.sampling_progress import SamplingProgress
from mergemill.services import make_services
from samplers.gateway.process import Budget, GatewayProcess, Upstream
from samplers.rollouts.run import RolloutRun, RolloutServices, TaskGrader, get_log_path
from samplers.scaffolds.base import AgentLimits, Scaffold
from taskdb import queries
from taskdb.artifacts import require_writable_folder
from taskdb.records import Task
from taskdb.rollouts import Rollout, RolloutPlan, RolloutStatus
from taskdb.selection import TaskFilters
from taskdb.store import Store

log = logging.getLogger(__name__)

CHECK_SECONDS = 15.0
WATCH_SECONDS = 1.0
"""Between two looks at the gateway's process."""


@dataclass(frozen=True, kw_only=True)
class SampleRequest:
    """What is sampled: tasks by scaffolds by attempts."""

    filters: TaskFilters
    scaffolds: tuple[Scaffold, ...]
    model: str
    attempts: int
    checkpoint: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    uncertified: bool = False
    """Whether tasks that are not certified may be sampled."""


@dataclass(frozen=True, kw_only=True)
class PendingRollout:
    """A plan that has no result yet. `retry`: number of its infrastructure failures so far."""

    plan: RolloutPlan
    task: Task
    scaffold: Scaffold
    retry: int


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
        pending = list_pending(store, plan_rollouts(tasks, request))
        services = enable_fetching(make_services(settings, engine=True), store)
        progress.begin(n_planned=len(tasks) * len(request.scaffolds) * request.attempts, n_pending=len(pending))
        if not pending:
            return progress.end()
        with services.images.hold(), _open_shared(request, settings, services, progress) as shared:
            for scaffold in request.scaffolds:
                shared.programs.ensure(scaffold.program)
            _run_all(pending, store, shared, settings, progress)
        return progress.end()


def select_tasks(store: Store, request: SampleRequest) -> list[Task]:
    """Return the tasks that the filters select, by name.

    Raises:
        InputError: none is selected, or one that is named is not certified.
    """
    filters = request.filters
    rows = queries.list_tasks(store, filters, columns=["id", "name", "status", "environment"])
    if not rows:
        raise InputError("no task is selected", advice="mergemill tasks list shows them; see its filters")
    if not request.uncertified:
        open_rows = [row for row in rows if row["status"] != "certified" and row["environment"] != "simulated"]
        if open_rows:
            name = open_rows[0]["name"]
            raise InputError(
                f"{name} is not certified", advice="mergemill certify, or --uncertified to sample it anyway"
            )
    tasks = store.get_many(Task, [row["id"] for row in rows])
    return [tasks[row["id"]] for row in sorted(rows, key=lambda row: (row["name"], row["id"]))]


def plan_rollouts(tasks: Sequence[Task], request: SampleRequest) -> list[PendingRollout]:
    """Return all rollouts of a request: first attempts of all tasks first, so that an early stop leaves breadth."""
    return [
        PendingRollout(plan=_make_plan(task, scaffold, attempt, request), task=task, scaffold=scaffold, retry=0)
        for attempt in range(1, request.attempts + 1)
        for task in tasks
        for scaffold in request.scaffolds
    ]


def _make_plan(task: Task, scaffold: Scaffold, attempt: int, request: SampleRequest) -> RolloutPlan:
    model = request.model if scaffold.uses_model else ""
    return RolloutPlan(
        task=task.id,
        name=task.name,
        scaffold=scaffold.name,
        scaffold_version=scaffold.version,
        model=model,
        checkpoint=request.checkpoint if scaffold.uses_model else "",
        sampling=dict(request.sampling) if scaffold.uses_model else {},
        attempt=attempt,
    )


def list_pending(store: Store, planned: Sequence[PendingRollout]) -> list[PendingRollout]:
    """Return the rollouts without a result, with the number of their infrastructure failures."""
    found = queries.count_rollouts(store, [one.plan.key for one in planned])
    return [
        replace(one, retry=failed) for one in planned for done, failed in [found.get(one.plan.key, (0, 0))] if not done
    ]


def make_grader(task: Task, services: Services) -> TaskGrader:
    """Return the oracle of a task for samplers."""
    reward = verifiers.select_reward(task)
    return TaskGrader(
        submission=reward.submission,
        grade=lambda submission: verifiers.grade(task, services, submission),
        make_gold=lambda: reward.make_gold(task, services),
    )


def check_upstream(upstream: Upstream) -> None:
    """Request the upstream's list of models, which costs nothing, before anything is started for it.

    Raises:
        InputError: it rejects the key.
        Transient: it does not answer.
    """
    url = upstream.url.rstrip("/")
    headers = {"Authorization": f"Bearer {upstream.key}"} if upstream.key else {}
    if upstream.dialect == "anthropic":
        url = url if url.endswith("/v1") else f"{url}/v1"
        headers = {"x-api-key": upstream.key, "anthropic-version": "2023-06-01"}
    try:
        response = requests.get(f"{url}/models", headers=headers, timeout=CHECK_SECONDS)
    except requests.RequestException as error:
        advice = "start it, or correct --upstream; then run the same command again"
        raise Transient(
            f"the model server {upstream.url} does not answer: {type(error).__name__}", advice=advice
        ) from error
    if response.status_code in (401, 403):
        raise InputError(
            f"the model server rejects the key ({response.status_code})", advice="set MERGEMILL_UPSTREAM_KEY"
        )


def make_upstream(settings: Settings) -> Upstream:
    """Return the model server of the settings.

    Raises:
        UsageError: none is named.
    """
    if settings.upstream is None:
        raise UsageError("no model server is named", advice="--upstream URL, or MERGEMILL_UPSTREAM")
    return Upstream(
        url=settings.upstream,
        dialect=settings.upstream_dialect,
        key=settings.upstream_key.get_secret_value() if settings.upstream_key else "",
        request_timeout=settings.request_timeout,
        prices=TokenPrices.from_settings(settings),
    )


@contextlib.contextmanager
def _open_shared(
    request: SampleRequest, settings: Settings, services: Services, progress: SamplingProgress
) -> Iterator[RolloutServices]:
    """Open the gateway where a scaffold needs one, and watch that it lives."""
    limits = AgentLimits(seconds=settings.rollout_seconds, turns=settings.rollout_turns)
    budget = Budget(requests=settings.rollout_requests, tokens=settings.rollout_tokens, cost=settings.rollout_cost)
    common = {"services": services, "programs": make_program_store(services), "limits": limits, "budget": budget}
    if not any(scaffold.uses_model for scaffold in request.scaffolds):
        yield RolloutServices(**common, gateway=None, agent_socket=None)
        return
    upstream = make_upstream(settings)
    check_upstream(upstream)
    logs = settings.store_dir / "gateway"
    folder = Path(tempfile.mkdtemp(prefix="mergemill-agents-"))  # a socket's path must be short
    try:
        with (
            hold_machine_lock("sample", str(logs.resolve())),
            GatewayProcess(upstream, logs, agent_socket=folder / "gateway.sock", port=0) as gateway,
            _watch_gateway(gateway, progress),
        ):
            progress.read_usage = gateway.get_usage
            yield RolloutServices(**common, gateway=gateway, agent_socket=folder / "gateway.sock")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _watch_gateway(gateway: GatewayProcess, progress: SamplingProgress) -> Iterator[None]:
    """Start the gateway again when it dies: open rollouts go on, their agents wait."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(WATCH_SECONDS):
            if not gateway.is_alive and not stop.is_set():
                progress.print_message("the gateway died and is started again")
                try:
                    gateway.restart()
                except MergemillError as error:
                    progress.print_message(error.format_line())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _run_all(
    pending: Sequence[PendingRollout],
    store: Store,
    shared: RolloutServices,
    settings: Settings,
    progress: SamplingProgress,
) -> None:
    """Run rollouts on worker threads; results are stored here, by one writer, as they come."""
    waiting = iter(pending)
    again: list[PendingRollout] = []
    running: dict[Future[Rollout], PendingRollout] = {}
    budget = Counter({one.plan.key: settings.rollout_retries for one in pending})
    with ThreadPoolExecutor(settings.workers, thread_name_prefix="mergemill-rollout") as threads:
        try:
            while True:
                while len(running) < settings.workers and (one := _take_next(again, waiting)) is not None:
                    running[threads.submit(_run_one, one, shared, progress)] = one
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED, timeout=WATCH_SECONDS)
                for future in done:
                    one = running.pop(future)
                    rollout = _store_result(future, one, store, shared, progress)
                    is_open = rollout is not None and rollout.status is RolloutStatus.INFRASTRUCTURE
                    if is_open and budget[one.plan.key] > 0:
                        budget[one.plan.key] -= 1
                        again.append(replace(one, retry=one.retry + 1))
        except BaseException:
            shared.services.sandbox.stop()
            raise


def _take_next(again: list[PendingRollout], waiting: Iterator[PendingRollout]) -> PendingRollout | None:
    """Return the next new rollout; failed ones follow when there is no new one."""
    new = next(waiting, None)
    return new if new is not None else again.pop(0) if again else None


def _run_one(one: PendingRollout, shared: RolloutServices, progress: SamplingProgress) -> Rollout:
    with progress.track(one.plan):
        grader = make_grader(one.task, shared.services)
        return RolloutRun(
            plan=one.plan, task=one.task, scaffold=one.scaffold, grader=grader, shared=shared, retry=one.retry
        ).run()


def _store_result(
    future: Future[Rollout], one: PendingRollout, store: Store, shared: RolloutServices, progress: SamplingProgress
) -> Rollout | None:
    """Store a finished rollout with its trajectories, and remove the gateway's log, which the record holds."""
    try:
        rollout = future.result()
    except CancelledRunError:
        raise
    except MergemillError as error:
        progress.report_failure(one.plan, error)
        return None
    except Exception as error:
        log.exception("a rollout of %s failed through a bug", one.plan.name)
        progress.report_failure(one.plan, error)
        return None
    store.add(rollout)
    if shared.gateway is not None and rollout.status is not RolloutStatus.INFRASTRUCTURE:
        get_log_path(shared.gateway.log_dir, one.plan).unlink(missing_ok=True)
    progress.report_result(rollout)
    return rollout
