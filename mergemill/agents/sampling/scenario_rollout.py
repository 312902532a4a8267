"""Run a rollout of a scenario: an episode in a shared container of worlds, a model behind the gateway, the checks.

The actions that the agent did, failed to do or was stopped at is a result, and the state it left is scored. A failure
of engine, gateway, upstream, disk or of the user's model is none (`infrastructure`). Where the world's own program had
a fault there is no value either, but it is a result, as it would come again.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from backends.llm.meter import UsageMeter
from core.errors import InputError, Transient
from mergemill.agents.sampling.request import PendingRollout
from mergemill.agents.sampling.world_scaffolds import SCRIPTED, WorldScaffold
from samplers.gateway.process import Budget, GatewayProcess
from samplers.rollouts.gateway_model import GatewayModel
from samplers.rollouts.recorded import RecordedTraffic
from samplers.rollouts.recording import FinishedRollout, RolloutRecorder
from samplers.scaffolds.base import AgentEnd
from samplers.scaffolds.gateway_client import GatewayError
from samplers.trajectories.credit import Credit
from taskdb.artifacts import Artifacts
from taskdb.queries.trajectories import SYNTHETIC
from taskdb.records import Score
from taskdb.records.rollouts import RolloutPlan
from worlds.definitions import Call, ScenarioDefinition, WorldDefinition
from worlds.gates.solutions import resolve_arguments
from worlds.rewards import EpisodeScore, Scorer
from worlds.scenario_agent import EpisodeEnd, ScenarioAgent
from worlds.scenario_run import ScenarioRun
from worlds.server.host import WorldHost
from worlds.server.service import CallResult
from worlds.users import ModelUser, SimulatedUser, make_scripted_user

REASONS: Mapping[EpisodeEnd, str | None] = {
    EpisodeEnd.COMPLETED: None,
    EpisodeEnd.USER: None,
    EpisodeEnd.TRUNCATED: "turn-limit",
    EpisodeEnd.FAULT: "world-fault",
    EpisodeEnd.TOO_LONG: "model-failed",
    EpisodeEnd.NO_ACTION: "no-action",
    EpisodeEnd.BUDGET: "time-limit",
}
"""End of an episode -> reason of the rollout; None where it ended by itself."""
SEED = 0
"""Seed of every episode: attempts differ in the actions that the model does alone."""


@dataclass(frozen=True, kw_only=True)
class SampledScenario:
    """A scenario with its world. `solution` is that of its certificate, empty where there is none."""

    definition: ScenarioDefinition
    world: WorldDefinition
    solution: tuple[Call, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorldServices:
    """Services that all rollouts of an invocation share."""

    host: WorldHost
    artifacts: Artifacts
    clock: Callable[[], str]
    gateway: GatewayProcess | None
    """In front of the agents' model; None where no scaffold uses a user."""
    user_gateway: GatewayProcess | None
    """In front of the users' model, which may be the same gateway; None where no model plays them."""
    budget: Budget
    seconds: float
    """Wall time of an episode."""
    max_steps: int
    """Actions after which an episode ends."""
    credit: Credit
    scorer: Scorer = field(default_factory=Scorer)


def make_user_plan(plan: RolloutPlan, scaffold: WorldScaffold) -> RolloutPlan:
    """Return the plan under whose key the gateway keeps the answers of a rollout's user."""
    return plan.model_copy(update={"scaffold": "user", "model": scaffold.user_model, "sampling": {}})


class UserFailedError(Transient):
    """The model that plays the user does not answer, or plays no user."""


@dataclass(frozen=True)
class GuardedUser:
    """A user played by a model, whose failures are not those of the engine."""

    user: ModelUser

    def greet(self) -> str:
        """See `worlds.users.SimulatedUser`."""
        with self._guard():
            return self.user.greet()

    def answer(self, text: str) -> str:
        """See `worlds.users.SimulatedUser`."""
        with self._guard():
            return self.user.answer(text)

    @staticmethod
    @contextlib.contextmanager
    def _guard() -> Iterator[None]:
        try:
            yield
        except GatewayError as error:
            raise UserFailedError(f"the user's model does not answer: {error}") from error
        except Transient as error:
            raise UserFailedError(str(error), advice=error.advice) from error


@dataclass(kw_only=True)
class ScenarioRolloutRun:
    """A rollout while it runs."""

    pending: PendingRollout
    subject: SampledScenario
    scaffold: WorldScaffold
    shared: WorldServices

    def __post_init__(self) -> None:
        shared = self.shared
        uses_model = self.scaffold.uses_model
        self.recorder = RolloutRecorder(
            plan=self.pending.plan,
            retry=self.pending.retry,
            gateway=shared.gateway if uses_model else None,
            artifacts=shared.artifacts,
            statement=self.subject.definition.task,
            credit=shared.credit,
        )
        self.user_recorder = RolloutRecorder(
            plan=make_user_plan(self.pending.plan, self.scaffold),
            retry=self.pending.retry,
            gateway=shared.user_gateway if self.scaffold.user_model else None,
            artifacts=shared.artifacts,
            statement="",
        )
        self.end = AgentEnd()
        self.calls: list[Call] = []
        self.score: EpisodeScore | None = None

    def run(self) -> FinishedRollout:
        """Run it and return its records.

        Raises:
            CancelledRunError: Ctrl-C; nothing is recorded, and the gateway's logs are kept for the next run.
        """
        started, at = time.perf_counter(), self.shared.clock()
        recorder, failure = self.recorder, None
        try:
            with self._open_user() as user, recorder.open_access(self.shared.budget) as endpoint:
                model = GatewayModel(self.pending.plan.model, endpoint) if self.scaffold.uses_model else None
                with self._open_run(user) as run:
                    self._act(run, model)
        except UserFailedError as error:
            failure = ("user-failed", error.format_line())
        except Transient as error:
            failure = ("engine-failed", error.format_line())
        except InputError as error:
            failure = ("world-refused", error.format_line())
        traffic = recorder.read_traffic()
        failure = failure or traffic.find_upstream_failure(recorder.usage)
        recorder.seconds["all"] = time.perf_counter() - started
        return self._make_records(failure, traffic, at)

    @contextlib.contextmanager
    def _open_user(self) -> Iterator[SimulatedUser | None]:
        """Yield the user of a conversation; None where there is none."""
        definition = self.subject.definition
        if not self.scaffold.user_model:
            yield make_scripted_user(definition) if self.scaffold.user == SCRIPTED else None
            return
        with self.user_recorder.open_access(Budget()) as endpoint:
            yield GuardedUser(ModelUser(GatewayModel(self.scaffold.user_model, endpoint), definition.task))

    @contextlib.contextmanager
    def _open_run(self, user: SimulatedUser | None) -> Iterator[ScenarioRun]:
        began = time.perf_counter()
        server, served = self.shared.host.find(self.subject.world)
        with ScenarioRun(
            server,
            served,
            self.subject.definition,
            self.shared.scorer,
            seed=SEED,
            user=user,
            max_steps=self.shared.max_steps,
        ) as run:
            self.recorder.seconds["start"] = time.perf_counter() - began
            yield run

    def _act(self, run: ScenarioRun, model: GatewayModel | None) -> None:
        """Let the scaffold act, and score the state that it leaves."""
        began = time.perf_counter()
        try:
            if model is not None:
                self.end = self._work(run, model)
            elif self.scaffold.name == "oracle":
                self._replay(run)
        finally:
            self.recorder.seconds["agent"] = time.perf_counter() - began
        began = time.perf_counter()
        self.score = run.evaluate()
        self.recorder.seconds["grade"] = time.perf_counter() - began

    def _work(self, run: ScenarioRun, model: GatewayModel) -> AgentEnd:
        agent = ScenarioAgent(run)
        try:
            end = agent.work(model, UsageMeter(), deadline=time.monotonic() + self.shared.seconds)
        except GatewayError as error:
            return AgentEnd(reason="model-failed", detail=str(error))
        finally:
            self.calls = [made.call for made in agent.calls]
        return AgentEnd(reason=REASONS[end], detail=agent.detail)

    def _replay(self, run: ScenarioRun) -> None:
        """Make the calls of the certificate's solution."""
        results: dict[int, CallResult] = {}
        for number, call in enumerate(self.subject.solution):
            arguments = resolve_arguments(call, results)
            self.calls.append(Call(tool=call.tool, arguments=arguments))
            outcome = run.step({"tool": call.tool, "arguments": arguments})
            results[number] = CallResult(value=outcome.observation, digest=run.digest)

    def _make_records(self, failure: tuple[str, str] | None, traffic: RecordedTraffic, at: str) -> FinishedRollout:
        user = self.user_recorder.usage
        calls = [call.to_json() for call in self.calls]
        end = AgentEnd(reason=self.end.reason, detail=self.end.detail, output=self._describe_episode())
        return self.recorder.make_records(
            end,
            traffic,
            failure=failure,
            score=self._make_score(),
            submission=json.dumps(calls, ensure_ascii=False).encode(errors="replace") if calls else b"",
            at=at,
            environment=SYNTHETIC,
            cost=self.recorder.usage.cost + user.cost,
        )

    def _make_score(self) -> Score | None:
        """Return the score; None where nothing was scored, or the world's program had a fault."""
        score = self.score
        if score is None or self.end.reason == REASONS[EpisodeEnd.FAULT]:
            return None
        earning = [check.is_passed for number, check in enumerate(score.checks) if number not in score.kept]
        kept = [score.checks[number].is_passed for number in sorted(score.kept)]
        return Score(
            task=self.subject.definition.name,
            value=score.reward,
            resolved=score.reward == 1.0,
            f2p_rate=sum(earning) / len(earning) if earning else 0.0,
            p2p_rate=sum(kept) / len(kept) if kept else 1.0,
            explanation=f"{sum(earning)} of {len(earning)} checks passed",
            parts={check.function: float(check.is_passed) for check in score.checks},
        )

    def _describe_episode(self) -> str:
        """Return the facts that the rollout's log has of the episode.

        The checks, and the usage that the user's model used.
        """
        user = self.user_recorder.usage
        about: dict[str, Any] = {"environment": SYNTHETIC, "seed": SEED, "user": self.scaffold.user}
        if self.scaffold.user_model:
            names = ("requests", "prompt_tokens", "completion_tokens", "cost")
            about["user_usage"] = {name: getattr(user, name) for name in names}
        if self.score is not None:
            about["checks"] = self.score.to_json()["checks"]
        return json.dumps(about)
