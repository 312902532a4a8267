"""Run one rollout: container, gateway access, the scaffold's hooks, grading, and the record of all of it.

What the agent did, failed to do, or was stopped at is a result (`done`, `failed`) and is graded as it stands. A failure
of engine, gateway, upstream, disk or grading is none (`infrastructure`): it has no value, and the plan stays open.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from backends.sandbox.base import ContainerSession
from backends.services import Services
from core.errors import InputError, Transient
from samplers.gateway.process import Budget, GatewayProcess, GatewayUsage, RolloutAccess
from samplers.instructions.instruction import make_instruction
from samplers.programs.store import ProgramStore
from samplers.rollouts.container import GATEWAY_URL, LostContainerError, RolloutContainer, open_rollout_container
from samplers.rollouts.environment import SIMULATED, EnvironmentOpener, SimulatedEnvironment, SimulatorFailedError
from samplers.rollouts.observer import StateObserver
from samplers.rollouts.recorded import RecordedTraffic, read_traffic
from samplers.scaffolds.base import AgentEnd, AgentLimits, AgentSession, GatewayEndpoint, Scaffold
from samplers.trajectories.build import build_trajectories
from samplers.trajectories.credit import Credit, share_reward
from taskdb.records import Score, Task
from taskdb.rollouts import ObservedState, Rollout, RolloutPlan, RolloutStatus, Trajectory

MAX_DETAIL = 500
TURNS = "turns"
"""Name of the gateway for the budget that is the limit of turns."""


@dataclass(frozen=True, kw_only=True)
class TaskOracle:
    """Oracle of a task, handed in by the application: samplers know no verifiers."""

    submission: str
    """`patch`, `tests` or `review`."""
    grade: Callable[[bytes], Score]
    make_gold: Callable[[], bytes]


@dataclass(frozen=True, kw_only=True)
class RolloutServices:
    """What all rollouts of one invocation share."""

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
    """Opens what stands for the environment of a simulated task; None where no such task is sampled."""


@dataclass(frozen=True, kw_only=True)
class FinishedRollout:
    """Records of one rollout."""

    rollout: Rollout
    trajectories: tuple[Trajectory, ...]


def get_log_path(gateway_logs: Path, plan: RolloutPlan) -> Path:
    """Return the gateway's log of a plan; it exists from the first request until the rollout is stored."""
    return gateway_logs / f"{plan.key}.jsonl"


@dataclass(kw_only=True)
class RolloutRun:
    """One rollout while it runs. `retry`: number of earlier infrastructure failures of its plan."""

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
        self.usage = GatewayUsage()
        self.states: list[ObservedState] = []
        self.seconds: dict[str, float] = {}
        self.n_simulated = 0

    def run(self) -> FinishedRollout:
        """Run it and return its records.

        Raises:
            CancelledRunError: Ctrl-C; nothing is recorded, and the gateway's log is kept for the next run.
        """
        started, at = time.perf_counter(), self.shared.services.clock()
        failure: tuple[str, str] | None = None
        try:
            with self._open_access() as endpoint:
                self._run_agent(endpoint)
        except SimulatorFailedError as error:
            failure = ("simulator-failed", error.format_line())
        except Transient as error:
            failure = ("engine-failed", error.format_line())
        except InputError as error:
            failure = ("no-image", error.format_line())
        traffic = self._read_traffic()
        failure = failure or traffic.find_upstream_failure(self.usage) or self._grade()
        self.seconds["all"] = time.perf_counter() - started
        rollout = self._make_record(failure, traffic, at)
        return FinishedRollout(rollout=rollout, trajectories=self._build_trajectories(rollout, traffic))

    @property
    def _gateway(self) -> GatewayProcess | None:
        return self.shared.gateway if self.scaffold.uses_model else None

    @contextlib.contextmanager
    def _open_access(self) -> Iterator[GatewayEndpoint]:
        """Give the rollout access to the gateway; its usage is read at the end."""
        secret, gateway = secrets.token_urlsafe(24), self._gateway
        if gateway is None:
            yield GatewayEndpoint(container_url="", host_url="", secret=secret)
            return
        access = RolloutAccess(
            secret=secret,
            model=self.plan.model,
            sampling=self.plan.sampling,
            budget=self.shared.budget.model_copy(update={"turns": self.shared.limits.turns}),
            replay=True,
        )
        gateway.open_rollout(self.plan.key, access)
        try:
            yield GatewayEndpoint(
                container_url=f"{GATEWAY_URL}/r/{secret}",
                host_url=f"http://{gateway.host}:{gateway.port}/r/{secret}",
                secret=secret,
            )
        finally:
            self.usage = gateway.close_rollout(self.plan.key)

    def _run_agent(self, endpoint: GatewayEndpoint) -> None:
        """Run the first three hooks in the container."""
        programs = self.shared.programs
        socket = self.shared.agent_socket if self._gateway and programs else None
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
            self.seconds["start"] = container.start_seconds
            began = time.perf_counter()
            with StateObserver(container, self._read_usage, self.states) as observer:
                session = self._make_session(container, shell, endpoint, observer)
                self.scaffold.agent_preprocess(session)
                try:
                    self.end = self.scaffold.agent_run(session)
                finally:
                    self.n_simulated = environment.count_calls() if environment else 0
            self.seconds["agent"] = time.perf_counter() - began
            try:
                self.submission = self.scaffold.agent_postprocess(session)
            except LostContainerError as error:
                reason = self.end.reason or "container-lost"
                self.end = AgentEnd(reason=reason, detail=str(error), output=self.end.output)

    @contextlib.contextmanager
    def _open_environment(self) -> Iterator[SimulatedEnvironment | None]:
        """Open what stands for the environment of a simulated task; None for other tasks."""
        if self.task.environment != SIMULATED or self.shared.open_environment is None:
            yield None
            return
        with self.shared.open_environment(self.task) as environment:
            yield environment

    def _require_programs(self) -> ProgramStore:
        if self.shared.programs is None:
            raise InputError(f"{self.task.name} needs a small image", advice="--sandbox docker")
        return self.shared.programs

    def _read_usage(self) -> GatewayUsage:
        return self._gateway.get_usage(self.plan.key) if self._gateway else GatewayUsage()

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
        """Grade the submission, an empty one where none was collected; return why it could not be graded."""
        began = time.perf_counter()
        try:
            self.score = self.scaffold.calculate_reward(self.task, self.submission or b"", self.oracle.grade)
        except (Transient, InputError) as error:
            return "not-graded", error.format_line()
        finally:
            self.seconds["grade"] = time.perf_counter() - began
        error_detail = self.score.infrastructure_error
        return ("not-graded", error_detail) if error_detail else None

    def _read_traffic(self) -> RecordedTraffic:
        gateway = self._gateway
        return read_traffic(get_log_path(gateway.log_dir, self.plan) if gateway else None)

    def _make_record(self, failure: tuple[str, str] | None, traffic: RecordedTraffic, at: str) -> Rollout:
        reason, detail = failure or self._describe_end(traffic)
        status = RolloutStatus.DONE if reason is None else RolloutStatus.FAILED
        score = self.score if failure is None else None
        plan, put = self.plan, self.shared.services.artifacts.put
        return Rollout(
            parent=self.task.id,
            name=self.task.name,
            plan=plan.key,
            scaffold=plan.scaffold,
            scaffold_version=plan.scaffold_version,
            model=plan.model,
            checkpoint=plan.checkpoint,
            sampling=plan.sampling,
            attempt=plan.attempt,
            retry=self.retry,
            environment=self.task.environment,
            simulated_calls=self.n_simulated,
            status=RolloutStatus.INFRASTRUCTURE if failure else status,
            reason=reason,
            detail=detail[:MAX_DETAIL],
            submission=put(self.submission) if self.submission is not None else None,
            score=self.score,
            value=score.value if score else None,
            resolved=score.resolved if score else False,
            leaks=traffic.find_leaks(self.task, self.shared.services.artifacts),
            exchanges=put(traffic.raw) if traffic.raw else None,
            requests=self.usage.requests,
            prompt_tokens=self.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens,
            cost=self.usage.cost,
            in_doubt=traffic.n_doubtful,
            states=tuple(self.states),
            latencies=tuple(round(exchange.seconds, 3) for exchange in traffic.exchanges),
            log=put(self.end.output.encode()) if self.end.output else None,
            at=at,
            start_seconds=self._read_clock("start"),
            agent_seconds=self._read_clock("agent"),
            grade_seconds=self._read_clock("grade"),
            seconds=self._read_clock("all"),
        )

    def _build_trajectories(self, rollout: Rollout, traffic: RecordedTraffic) -> tuple[Trajectory, ...]:
        """Return the conversations of the rollout; none after a failure that is not the agent's."""
        if rollout.status is RolloutStatus.INFRASTRUCTURE:
            return ()
        artifacts, statement = self.shared.services.artifacts, self.task.problem_statement
        made = build_trajectories(rollout, traffic.exchanges, artifacts, statement=statement, credit=self.shared.credit)
        return tuple(made)

    def _read_clock(self, part: str) -> float:
        return round(self.seconds.get(part, 0.0), 3)

    def _describe_end(self, traffic: RecordedTraffic) -> tuple[str | None, str]:
        """Return why the agent did not end by itself, and a detail.

        A budget that is used up is the reason of what follows. A program that fails once its last request failed fails
        for that, whatever it prints.
        """
        stopped_by, reason = self.usage.stopped_by, self.end.reason
        if stopped_by:
            return "turn-limit" if stopped_by == TURNS else f"budget-{stopped_by}", self.end.detail
        last = traffic.exchanges[-1].error if traffic.exchanges else None
        if last is not None and reason in ("agent-failed", "model-failed"):
            return "model-failed", last.detail
        return reason, self.end.detail
