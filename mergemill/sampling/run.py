"""Run the pending rollouts of tasks.

Rollouts that a killed driver left behind begin again; what their models had answered is read from the gateway's log
instead of being paid again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import verifiers
from backends.services import Services
from core.config import Settings
from mergemill.images.fetch import enable_fetching
from mergemill.sampling.drive import RolloutDriver
from mergemill.sampling.programs import make_program_store
from mergemill.sampling.progress import SamplingProgress
from mergemill.sampling.request import PendingRollout, SampleRequest, list_pending, select_tasks
from mergemill.sampling.upstream import open_gateway
from mergemill.services import make_services
from samplers.gateway.process import Budget, GatewayProcess
from samplers.rollouts.recording import FinishedRollout, get_log_path
from samplers.rollouts.run import RolloutRun, RolloutServices, TaskOracle
from samplers.scaffolds.base import AgentLimits, Scaffold
from taskdb.artifacts import require_writable_folder
from taskdb.records import Task
from taskdb.rollouts import RolloutPlan
from taskdb.store import Store


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
        find_pending = partial(list_pending, store, tasks, request.scaffolds, request)
        planned, pending = find_pending()
        progress.set_work(n_planned=planned, n_pending=len(pending))
        if not pending:
            return progress.end()
        services = enable_fetching(make_services(settings, engine=True), store)
        with services.images.hold(), _open_shared(request, settings, services, progress) as shared:
            for scaffold in request.scaffolds:
                shared.programs.ensure(scaffold.program)
            driver = RolloutDriver(
                store=store,
                settings=settings,
                progress=progress,
                list_pending=find_pending,  # again: another driver, for whose end this one waited, may have done it
                run_one=TaskSampler(
                    tasks={task.id: task for task in tasks},
                    scaffolds={(scaffold.name, scaffold.version): scaffold for scaffold in request.scaffolds},
                    shared=shared,
                ).run,
                forget=partial(forget_exchanges, shared.gateway),
                stop=shared.services.sandbox.stop,
                is_staged=request.attempts is None,
            )
            driver.run()
        return progress.end()


@dataclass(frozen=True, kw_only=True)
class TaskSampler:
    """Runs rollouts of tasks. `tasks` are by id, `scaffolds` by name and version."""

    tasks: Mapping[str, Task]
    scaffolds: Mapping[tuple[str, str], Scaffold]
    shared: RolloutServices

    def run(self, one: PendingRollout) -> FinishedRollout:
        """Run a rollout and return its records."""
        task = self.tasks[one.plan.task]
        return RolloutRun(
            plan=one.plan,
            task=task,
            scaffold=self.scaffolds[one.plan.scaffold, one.plan.scaffold_version],
            oracle=make_oracle(task, self.shared.services),
            shared=self.shared,
            retry=one.retry,
        ).run()


def forget_exchanges(gateway: GatewayProcess | None, plan: RolloutPlan) -> None:
    """Remove the gateway's log of a plan whose record holds it."""
    if gateway is not None:
        get_log_path(gateway.log_dir, plan).unlink(missing_ok=True)


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
