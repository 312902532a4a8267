"""Run the pending rollouts of tasks.

Rollouts that a killed driver left behind begin again; what their models had answered is read from the gateway's log
instead of being paid again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import verifiers
from backends.sandbox.registry import find_host_image
from backends.services import Services
from core.config import Settings
from core.errors import UsageError
from mergemill.agents.sampling.drive import RolloutDriver, open_threads, run_events, run_on_nodes
from mergemill.agents.sampling.programs import make_program_store
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import PendingRollout, SampleRequest, list_pending, select_tasks
from mergemill.agents.sampling.upstream import open_gateway
from mergemill.execution.clusters import LOCAL, check_cluster_settings
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.nodes import share_settings
from mergemill.execution.services import make_services
from mergemill.simulation.tasks import SimulatedTasks, check_simulator, open_simulated_tasks
from samplers.gateway.process import Budget, GatewayProcess, Upstream
from samplers.rollouts.environment import SIMULATED
from samplers.rollouts.recording import FinishedRollout, get_log_path
from samplers.rollouts.run import RolloutRun, RolloutServices, TaskOracle
from samplers.scaffolds.base import AgentLimits, CommandScaffold, Scaffold
from taskdb.artifacts import require_writable_store
from taskdb.records import Task
from taskdb.records.rollouts import RolloutPlan
from taskdb.store import Store

CountAnswers = Callable[[], Mapping[str, int]]
"""Returns how the calls of simulated programs were answered: name of a way -> number of calls."""


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
    check_cluster_settings(settings)
    require_writable_store(settings)
    with Store.open(settings.db, create=False, writes=True) as store:
        tasks = select_tasks(store, request)
        find_pending = partial(list_pending, store, tasks, request.scaffolds, request)
        planned, pending = find_pending()
        progress.set_work(n_planned=planned, n_pending=len(pending))
        if not pending:
            return progress.end()
        check_machine(tasks, request.scaffolds, settings)
        if is_simulated := any(task.environment == SIMULATED for task in tasks):
            check_simulator(settings)
        make_driver = partial(
            RolloutDriver,
            store=store,
            settings=settings,
            progress=progress,
            list_pending=find_pending,  # again: another driver, for whose end this one waited, may have done it
            is_staged=request.attempts is None,
        )
        if settings.cluster != LOCAL:
            _sample_on_cluster(request, settings, progress, make_driver, is_simulated=is_simulated)
        else:
            find_task = {task.id: task for task in tasks}.__getitem__
            with open_sampler(
                request, settings, store, progress, find_task=find_task, is_simulated=is_simulated
            ) as sampler:
                shared = sampler.shared
                make_driver(
                    cluster=open_threads(settings, shared.services),
                    run=partial(run_events, sampler.run),
                    forget=partial(forget_exchanges, shared.gateway),
                ).run_all()
        return progress.end()


def _sample_on_cluster(
    request: SampleRequest,
    settings: Settings,
    progress: SamplingProgress,
    make_driver: Callable[..., RolloutDriver],
    *,
    is_simulated: bool,
) -> None:
    """Run rollouts on the nodes of a cluster."""
    from mergemill.agents.sampling.nodes import NodeTaskRollouts  # noqa: PLC0415 - one machine needs none of it

    uses_model = any(scaffold.uses_model for scaffold in request.scaffolds)
    upstreams = [Upstream.from_settings(settings)] if uses_model else []
    engine = find_host_image(settings.sandbox) is None
    run = NodeTaskRollouts(settings=share_settings(settings), request=request, is_simulated=is_simulated)
    run_on_nodes(make_driver, run, settings, progress, engine=engine, upstreams=upstreams)


@contextlib.contextmanager
def open_sampler(
    request: SampleRequest,
    settings: Settings,
    store: Store,
    progress: SamplingProgress,
    *,
    find_task: Callable[[str], Task],
    is_simulated: bool,
    slot: str = "",
) -> Iterator[TaskSampler]:
    """Open what rollouts of tasks need on this machine: engine, gateway, programs.

    Args:
        request: what is sampled.
        settings: of this machine.
        store: read for images and logs of real runs.
        progress: receives messages and the usage of the gateway.
        find_task: returns a task by its id.
        is_simulated: whether any of the tasks is simulated.
        slot: of a worker process of a cluster, whose logs are in folders of its own.

    Raises:
        MachineError, Transient, UsageError: as of `sample`.
    """
    services = make_services(_choose_simulator(settings), engine=True)
    has_images = find_host_image(settings.sandbox) is None
    if has_images:
        services = enable_fetching(services, store)
    with contextlib.ExitStack() as stack:
        if has_images:
            stack.enter_context(services.images.hold())
        shared = stack.enter_context(_open_shared(request, settings, services, progress, slot))
        count_answers: CountAnswers = dict
        if is_simulated:
            simulated = stack.enter_context(_open_simulated(shared, store, progress, slot))
            shared = replace(shared, open_environment=simulated.open_environment)
            count_answers = simulated.simulator.count_answers
            progress.count_simulated = count_answers
        if shared.programs is not None:
            for scaffold in request.scaffolds:
                shared.programs.ensure(scaffold.program)
        yield TaskSampler(
            find_task=find_task,
            scaffolds={(scaffold.name, scaffold.version): scaffold for scaffold in request.scaffolds},
            shared=shared,
            count_answers=count_answers,
        )


@dataclass(frozen=True, kw_only=True)
class TaskSampler:
    """Runs rollouts of tasks. `find_task` returns a task by its id; `scaffolds` are by name and version."""

    find_task: Callable[[str], Task]
    scaffolds: Mapping[tuple[str, str], Scaffold]
    shared: RolloutServices
    count_answers: CountAnswers
    """Returns how the calls of simulated programs were answered so far."""

    def run(self, one: PendingRollout) -> FinishedRollout:
        """Run a rollout and return its records."""
        task = self.find_task(one.plan.task)
        return RolloutRun(
            plan=one.plan,
            task=task,
            scaffold=self.scaffolds[one.plan.scaffold, one.plan.scaffold_version],
            oracle=make_oracle(task, self.shared.services),
            shared=self.shared,
            retry=one.retry,
        ).run()

    def stop(self) -> None:
        """End the containers of the rollouts that run."""
        self.shared.services.sandbox.stop()


def forget_exchanges(gateway: GatewayProcess | None, plan: RolloutPlan) -> None:
    """Remove the gateway's log of a plan whose record holds it."""
    if gateway is not None:
        get_log_path(gateway.log_dir, plan).unlink(missing_ok=True)


def check_machine(tasks: Sequence[Task], scaffolds: Sequence[Scaffold], settings: Settings) -> None:
    """Check that a sandbox of this machine's programs suffices, where it is that.

    Raises:
        UsageError: a task needs an image, or a scaffold a program in the container.
    """
    if find_host_image(settings.sandbox) is None:
        return
    if others := [task.name for task in tasks if task.environment != SIMULATED]:
        advice = "--sandbox docker, or --environment simulated"
        raise UsageError(f"--sandbox {settings.sandbox} has no image for {others[0]}", advice=advice)
    if inside := [one.name for one in scaffolds if one.program is not None or isinstance(one, CommandScaffold)]:
        advice = "--sandbox docker, or a scaffold that needs no program, such as react"
        raise UsageError(f"--sandbox {settings.sandbox} has no place for the program of {inside[0]}", advice=advice)


def _choose_simulator(settings: Settings) -> Settings:
    """Return settings whose model is the simulator, which grades simulated tasks, too."""
    return settings.model_copy(update={"model": settings.simulator_model or settings.model})


@contextlib.contextmanager
def _open_simulated(
    shared: RolloutServices, store: Store, progress: SamplingProgress, slot: str
) -> Iterator[SimulatedTasks]:
    """Open what stands for the environments of simulated tasks."""
    programs = shared.programs

    def get_image() -> str:
        if programs is None:
            raise LookupError("a sandbox without volumes has an image of its own")
        return programs.get_image()

    with open_simulated_tasks(shared.services, store, get_image, progress.print_message, slot=slot) as simulated:
        try:
            yield simulated
        finally:
            simulated.simulator.stop()


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
    request: SampleRequest, settings: Settings, services: Services, progress: SamplingProgress, slot: str
) -> Iterator[RolloutServices]:
    """Open what all rollouts share; a gateway where a scaffold needs one."""
    make = partial(
        RolloutServices,
        services=services,
        programs=make_program_store(services) if find_host_image(settings.sandbox) is None else None,
        limits=AgentLimits(seconds=settings.rollout_seconds, turns=settings.rollout_turns),
        budget=Budget(requests=settings.rollout_requests, tokens=settings.rollout_tokens, cost=settings.rollout_cost),
        credit=request.credit,
    )
    if not any(scaffold.uses_model for scaffold in request.scaffolds):
        yield make(gateway=None, agent_socket=None)
        return
    with open_gateway(settings, progress, slot=slot) as (gateway, agent_socket):
        yield make(gateway=gateway, agent_socket=agent_socket)
