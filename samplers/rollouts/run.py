"""Run a rollout: container, gateway access, the scaffold's hooks, grading, and the record of all of it.

The actions that the agent did, failed to do, or was stopped at is a result (`done`, `failed`) and is graded as it
stands. A failure of engine, gateway, upstream, disk or grading is none (`infrastructure`): it has no value, and the
plan stays open.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from backends.sandbox.base import ContainerSession
from backends.services import Services
from core.errors import InputError, Transient
from samplers.gateway.process import Budget, GatewayProcess
from samplers.instructions.instruction import make_instruction
from samplers.programs.store import ProgramStore
from samplers.rollouts.container import LostContainerError, RolloutContainer, open_rollout_container
from samplers.rollouts.environment import SIMULATED, EnvironmentOpener, SimulatedEnvironment, SimulatorFailedError
from samplers.rollouts.observer import StateObserver
from samplers.rollouts.recording import FinishedRollout, RolloutRecorder
from samplers.scaffolds.base import AgentEnd, AgentLimits, AgentSession, GatewayEndpoint, Scaffold
from samplers.trajectories.credit import Credit, share_reward
from taskdb.records import Score, Task
from taskdb.records.rollouts import ObservedState, RolloutPlan


@dataclass(frozen=True, kw_only=True)
class TaskOracle:
    """Oracle of a task, handed in by the application: samplers know no verifiers."""

    submission: str
    """`patch`, `tests` or `review`."""
    grade: Callable[[bytes], Score]
    make_gold: Callable[[], bytes]


@dataclass(frozen=True, kw_only=True)
class RolloutServices:
    """Services that all rollouts of an invocation share."""

    services: Services
    programs: ProgramStore | None
    """None where the sandbox has no volumes for them."""
    gateway: GatewayProcess | None
    """None where no scaffold uses a model."""
    agent_socket: Path | None
    """The gateway's socket for containers."""
    limits: AgentLimits
    budget: Budget
    credit: Credit = share_reward
    """Divides a rollout's reward among its trajectories."""
    open_environment: EnvironmentOpener | None = None
    """Opens the object that stands for the environment of a simulated task; None where no such task is sampled."""


@dataclass(kw_only=True)
class RolloutRun:
    """A rollout while it runs. `retry`: number of earlier infrastructure failures of its plan."""

    plan: RolloutPlan
    task: Task
    scaffold: Scaffold
    oracle: TaskOracle
    shared: RolloutServices
    retry: int

    def __post_init__(self) -> None:
        self.instruction = make_instruction(self.task, self.shared.services, self.oracle.submission)
        self.end = AgentEnd()
        self.submission: bytes | None = None
        self.score: Score | None = None
        self.states: list[ObservedState] = []
        self.recorder = RolloutRecorder(
            plan=self.plan,
            retry=self.retry,
            gateway=self.shared.gateway if self.scaffold.uses_model else None,
            artifacts=self.shared.services.artifacts,
            statement=self.task.problem_statement,
            credit=self.shared.credit,
        )
        self.n_simulated = 0

    def run(self) -> FinishedRollout:
        """Run it and return its records.

        Raises:
            CancelledRunError: Ctrl-C; nothing is recorded, and the gateway's log is kept for the next run.
        """
        started, at = time.perf_counter(), self.shared.services.clock()
        recorder, failure = self.recorder, None
        try:
            with recorder.open_access(
                self.shared.budget.model_copy(update={"turns": self.shared.limits.turns})
            ) as endpoint:
                self._run_agent(endpoint)
        except SimulatorFailedError as error:
            failure = ("simulator-failed", error.format_line())
        except Transient as error:
            failure = ("engine-failed", error.format_line())
        except InputError as error:
            failure = ("no-image", error.format_line())
        traffic = recorder.read_traffic()
        failure = failure or traffic.find_upstream_failure(recorder.usage) or self._grade()
        recorder.seconds["all"] = time.perf_counter() - started
        return recorder.make_records(
            self.end,
            traffic,
            failure=failure,
            score=self.score,
            submission=self.submission,
            at=at,
            leaks=traffic.find_leaks(self.task, self.shared.services.artifacts),
            states=tuple(self.states),
            environment=self.task.environment,
            simulated_calls=self.n_simulated,
        )

    def _run_agent(self, endpoint: GatewayEndpoint) -> None:
        """Run the first three hooks in the container."""
        programs = self.shared.programs
        socket = self.shared.agent_socket if self.recorder.gateway and programs else None
        with (
            self._open_environment() as environment,
            open_rollout_container(
                environment.image if environment else self.task.image or self._require_programs().get_image(),
                self.instruction,
                self.shared.services,
                seconds=self.shared.limits.seconds,
                programs=programs.ensure(self.scaffold.program) if programs else (),
                gateway_folder=socket.parent if socket else None,
                environment=environment,
            ) as container,
        ):
            shell = environment.attach(container.shell) if environment else container.shell
            self.recorder.seconds["start"] = container.start_seconds
            began = time.perf_counter()
            with StateObserver(container, self.recorder.read_usage, self.states) as observer:
                session = self._make_session(container, shell, endpoint, observer)
                self.scaffold.agent_preprocess(session)
                try:
                    self.end = self.scaffold.agent_run(session)
                finally:
                    self.n_simulated = environment.count_calls() if environment else 0
            self.recorder.seconds["agent"] = time.perf_counter() - began
            try:
                self.submission = self.scaffold.agent_postprocess(session)
            except LostContainerError as error:
                reason = self.end.reason or "container-lost"
                self.end = AgentEnd(reason=reason, detail=str(error), output=self.end.output)

    @contextlib.contextmanager
    def _open_environment(self) -> Iterator[SimulatedEnvironment | None]:
        """Open the object that stands for the environment of a simulated task; None for other tasks."""
        if self.task.environment != SIMULATED or self.shared.open_environment is None:
            yield None
            return
        with self.shared.open_environment(self.task) as environment:
            yield environment

    def _require_programs(self) -> ProgramStore:
        if self.shared.programs is None:
            raise InputError(f"{self.task.name} needs a small image", advice="--sandbox docker")
        return self.shared.programs

    def _make_session(
        self,
        container: RolloutContainer,
        shell: ContainerSession,
        endpoint: GatewayEndpoint,
        observer: StateObserver,
    ) -> AgentSession:
        return AgentSession(
            task=self.task,
            instruction=self.instruction,
            shell=shell,
            gateway=endpoint,
            model=self.plan.model,
            sampling=self.plan.sampling,
            limits=self.shared.limits,
            make_gold=self.oracle.make_gold,
            collect_submission=container.collect_submission,
            note_step=observer.observe,
        )

    def _grade(self) -> tuple[str, str] | None:
        """Grade the submission, an empty submission where none was collected; return why it could not be graded."""
        began = time.perf_counter()
        try:
            self.score = self.scaffold.calculate_reward(self.task, self.submission or b"", self.oracle.grade)
        except (Transient, InputError) as error:
            return "not-graded", error.format_line()
        finally:
            self.recorder.seconds["grade"] = time.perf_counter() - began
        error_detail = self.score.infrastructure_error
        return ("not-graded", error_detail) if error_detail else None
