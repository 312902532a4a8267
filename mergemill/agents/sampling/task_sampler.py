"""Tasks as subjects on this machine, and the services that their rollouts need: engine, gateway, programs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import verifiers
from backends.sandbox.registry import find_host_image
from backends.services import Services
from core.config import Settings
from core.settings.group import replace_values
from mergemill.agents.sampling.programs import make_program_store
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import SampleRequest
from mergemill.agents.sampling.subject_source import SubjectSampler, SubjectSource
from mergemill.agents.sampling.upstream import open_gateway
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.services import make_services
from mergemill.grading.grading import grade_content
from mergemill.simulation.tasks import SimulatedTasks, open_simulated_tasks
from samplers.gateway.process import Budget, GatewayProcess, Upstream
from samplers.programs.store import ProgramStore
from samplers.rollouts.container_environment import ContainerEnvironment, SubjectOracle
from samplers.rollouts.environment import SimulatedEnvironment
from samplers.rollouts.recording import get_log_path
from samplers.rollouts.run import RolloutServices
from samplers.scaffolds.base import AgentLimits
from samplers.subjects.subject import Subject
from samplers.subjects.task_subject import make_task_subject
from taskdb.records import Task
from taskdb.records.base import Record
from taskdb.records.rollouts import RolloutPlan
from taskdb.store import Store
from verifiers.rewards import instructions


@dataclass(frozen=True, kw_only=True)
class TaskSubjects(SubjectSource):
    """Tasks of a request. `is_simulated`: whether any of them is simulated."""

    request: SampleRequest
    is_simulated: bool

    def list_upstreams(self, settings: Settings) -> list[Upstream]:
        """See SubjectSource."""
        uses_model = any(scaffold.uses_model for scaffold in self.request.scaffolds)
        return [Upstream.from_settings(settings.upstream, settings.llm)] if uses_model else []

    def needs_engine(self, settings: Settings) -> bool:
        """See SubjectSource."""
        return find_host_image(settings.sandbox.kind) is None

    @contextlib.contextmanager
    def open_sampler(
        self,
        settings: Settings,
        store: Store,
        progress: SamplingProgress,
        *,
        records: Sequence[Record] | None = None,
        slot: str = "",
    ) -> Iterator[SubjectSampler]:
        """See SubjectSource."""
        services = make_services(_choose_simulator(settings), engine=True)
        has_images = find_host_image(settings.sandbox.kind) is None
        if has_images:
            services = enable_fetching(services, store)
        with contextlib.ExitStack() as stack:
            if has_images:
                stack.enter_context(services.images.hold())
            gateway, agent_socket = stack.enter_context(self._open_gateway(settings, progress, slot))
            finder = TaskFinder(services=services, find=_make_finder(store, records))
            programs = make_program_store(services) if has_images else None
            environment = ContainerEnvironment(
                services=services,
                programs=programs,
                agent_socket=agent_socket,
                limits=AgentLimits(seconds=settings.rollout.seconds, turns=settings.rollout.turns),
                find_oracle=finder.find_oracle,
            )
            make = partial(
                SubjectSampler,
                find_subject=finder.find_subject,
                scaffolds=self.request.scaffolds,
                shared=self._make_shared(settings, services, gateway),
                services=services,
                list_logs=partial(_list_logs, gateway),
            )
            if self.is_simulated:
                simulated = stack.enter_context(_open_simulated(services, programs, store, progress, slot))
                opener = partial(finder.open_simulated, simulated)
                environment = replace(environment, open_simulated=opener)
                progress.count_simulated = simulated.simulator.count_answers
                make = partial(make, count_answers=simulated.simulator.count_answers)
            if programs is not None:
                for scaffold in self.request.scaffolds:
                    programs.ensure(scaffold.program)
            yield make(environment=environment)

    @contextlib.contextmanager
    def _open_gateway(
        self, settings: Settings, progress: SamplingProgress, slot: str
    ) -> Iterator[tuple[GatewayProcess | None, Path | None]]:
        """Open the gateway and its socket for containers, where a scaffold needs a gateway."""
        if not any(scaffold.uses_model for scaffold in self.request.scaffolds):
            yield None, None
            return
        with open_gateway(settings, progress, slot=slot) as opened:
            yield opened

    def _make_shared(self, settings: Settings, services: Services, gateway: GatewayProcess | None) -> RolloutServices:
        limits = settings.rollout
        return RolloutServices(
            artifacts=services.artifacts,
            clock=services.clock,
            gateway=gateway,
            budget=Budget(requests=limits.requests, tokens=limits.tokens, cost=limits.cost, turns=limits.turns),
            credit=self.request.credit,
            gives_feedback=self.request.gives_feedback,
        )


@dataclass(frozen=True, kw_only=True)
class TaskFinder:
    """Finds the subjects and oracles of tasks. `find`: function that returns a task by its id."""

    services: Services
    find: Callable[[str], Task]

    def find_subject(self, key: str) -> Subject:
        """Return the subject of a task."""
        task = self.find(key)
        return make_task_subject(task, self.services, verifiers.select_reward(task).submission)

    def find_oracle(self, subject: Subject) -> SubjectOracle:
        """Return the oracle of the task of a subject."""
        return make_oracle(self.find(subject.id), self.services)

    def open_simulated(self, simulated: SimulatedTasks, key: str) -> AbstractContextManager[SimulatedEnvironment]:
        """Open the object that stands for the environment of a simulated task."""
        return simulated.open_environment(self.find(key))


def _make_finder(store: Store, records: Sequence[Record] | None) -> Callable[[str], Task]:
    if records is None:
        return partial(store.get, Task)
    return {record.id: record for record in records if isinstance(record, Task)}.__getitem__


def _list_logs(gateway: GatewayProcess | None, plan: RolloutPlan) -> list[Path]:
    return [get_log_path(gateway.log_dir, plan)] if gateway is not None else []


def _choose_simulator(settings: Settings) -> Settings:
    """Return settings whose model is the simulator, which grades simulated tasks, too."""
    return replace_values(settings, {"model": settings.llm.simulator_model or settings.llm.model})


@contextlib.contextmanager
def _open_simulated(
    services: Services, programs: ProgramStore | None, store: Store, progress: SamplingProgress, slot: str
) -> Iterator[SimulatedTasks]:
    """Open the object that stands for the environments of simulated tasks."""

    def get_image() -> str:
        if programs is None:
            raise LookupError("a sandbox without volumes has an image of its own")
        return programs.get_image()

    with open_simulated_tasks(services, store, get_image, progress.print_message, slot=slot) as simulated:
        try:
            yield simulated
        finally:
            simulated.simulator.stop()


def make_oracle(task: Task, services: Services) -> SubjectOracle:
    """Return the oracle of a task for samplers."""
    reward = verifiers.select_reward(task)
    return SubjectOracle(
        grade=partial(grade_content, task, services),
        make_gold=lambda: reward.make_gold(task, services),
        list_broken=partial(instructions.list_broken, task, services),
    )
