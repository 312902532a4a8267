"""Rollouts of tasks on this machine, and the services that they need: engine, gateway, programs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import verifiers
from backends.sandbox.registry import find_host_image
from backends.services import Services
from core.config import Settings
from core.settings.group import replace_values
from mergemill.agents.sampling.programs import make_program_store
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import PendingRollout, SampleRequest
from mergemill.agents.sampling.upstream import open_gateway
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.services import make_services
from mergemill.simulation.tasks import SimulatedTasks, open_simulated_tasks
from samplers.gateway.process import Budget, GatewayProcess
from samplers.rollouts.recording import FinishedRollout, get_log_path
from samplers.rollouts.run import RolloutRun, RolloutServices, TaskOracle
from samplers.scaffolds.base import AgentLimits, Scaffold
from taskdb.records import Task
from taskdb.records.rollouts import RolloutPlan
from taskdb.store import Store

CountAnswers = Callable[[], Mapping[str, int]]
"""Returns how the calls of simulated programs were answered: name of a way -> number of calls."""


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
    """Open the services that rollouts of tasks need on this machine: engine, gateway, programs.

    Args:
        request: the selection that is sampled.
        settings: settings of this machine.
        store: read for images and logs of real runs.
        progress: function that receives messages and the usage of the gateway.
        find_task: function that returns a task by its id.
        is_simulated: whether any of the tasks is simulated.
        slot: slot of a worker process of a cluster, whose logs are in folders of its own.

    Raises:
        MachineError, Transient, UsageError: as of `sample`.
    """
    services = make_services(_choose_simulator(settings), engine=True)
    has_images = find_host_image(settings.sandbox.kind) is None
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

    def run(self, pending: PendingRollout) -> FinishedRollout:
        """Run a rollout and return its records."""
        task = self.find_task(pending.plan.task)
        return RolloutRun(
            plan=pending.plan,
            task=task,
            scaffold=self.scaffolds[pending.plan.scaffold, pending.plan.scaffold_version],
            oracle=make_oracle(task, self.shared.services),
            shared=self.shared,
            retry=pending.retry,
        ).run()

    def stop(self) -> None:
        """End the containers of the rollouts that run."""
        self.shared.services.sandbox.stop()


def forget_exchanges(gateway: GatewayProcess | None, plan: RolloutPlan) -> None:
    """Remove the gateway's log of a plan whose record holds it."""
    if gateway is not None:
        get_log_path(gateway.log_dir, plan).unlink(missing_ok=True)


def _choose_simulator(settings: Settings) -> Settings:
    """Return settings whose model is the simulator, which grades simulated tasks, too."""
    return replace_values(settings, {"model": settings.llm.simulator_model or settings.llm.model})


@contextlib.contextmanager
def _open_simulated(
    shared: RolloutServices, store: Store, progress: SamplingProgress, slot: str
) -> Iterator[SimulatedTasks]:
    """Open the object that stands for the environments of simulated tasks."""
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
    """Open the services that all rollouts share; a gateway where a scaffold needs a gateway."""
    make = partial(
        RolloutServices,
        services=services,
        programs=make_program_store(services) if find_host_image(settings.sandbox.kind) is None else None,
        limits=AgentLimits(seconds=settings.rollout.seconds, turns=settings.rollout.turns),
        budget=Budget(requests=settings.rollout.requests, tokens=settings.rollout.tokens, cost=settings.rollout.cost),
        credit=request.credit,
    )
    if not any(scaffold.uses_model for scaffold in request.scaffolds):
        yield make(gateway=None, agent_socket=None)
        return
    with open_gateway(settings, progress, slot=slot) as (gateway, agent_socket):
        yield make(gateway=gateway, agent_socket=agent_socket)
