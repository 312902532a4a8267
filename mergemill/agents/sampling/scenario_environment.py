"""Environment of scenarios: episodes in a shared container of worlds, with a user where there is a conversation.

A failure of the user's model is no result of the agent (`infrastructure`). Where the world's own program had a fault
there is no value either, but it is a result, as it would come again.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from core.errors import Transient
from mergemill.agents.sampling.world_scaffolds import SCRIPTED, ScenarioSession, WorldScaffold
from mergemill.execution.grader_version import compute_scenario_grader_version
from samplers.gateway.process import Budget, GatewayProcess, GatewayUsage
from samplers.rollouts.environment import EnvironmentModelError
from samplers.rollouts.episode import EpisodeTraces, RolloutOpening
from samplers.rollouts.gateway_model import GatewayModel
from samplers.rollouts.recording import RolloutRecorder
from samplers.scaffolds.base import SampledScaffold
from samplers.scaffolds.gateway_client import GatewayError
from samplers.subjects.subject import Subject
from taskdb.artifacts import Artifacts
from taskdb.queries.trajectories import SYNTHETIC
from taskdb.records import Score
from taskdb.records.rollouts import ObservedState, RolloutPlan
from worlds.definitions import Call, ScenarioDefinition, WorldDefinition
from worlds.rewards import EpisodeScore, Scorer
from worlds.scenario_run import ScenarioRun
from worlds.server.host import WorldHost
from worlds.users import ModelUser, SimulatedUser, make_scripted_user

SEED = 0
"""Seed of every episode: attempts differ in the actions that the model does alone."""


@dataclass(frozen=True, kw_only=True)
class SampledScenario:
    """A scenario with its world. `solution` is that of its certificate, empty where there is none."""

    id: str
    """Id of its record."""
    definition: ScenarioDefinition
    world: WorldDefinition
    solution: tuple[Call, ...] = ()

    def make_subject(self) -> Subject:
        """Return the subject of the scenario, whose conversation its environment opens."""
        task = self.definition.task
        return Subject(id=self.id, name=self.definition.name, environment=SYNTHETIC, statement=task)


def make_user_plan(plan: RolloutPlan, scaffold: WorldScaffold) -> RolloutPlan:
    """Return the plan under whose key the gateway keeps the answers of a rollout's user."""
    return plan.model_copy(update={"scaffold": "user", "model": scaffold.user_model, "sampling": {}})


class UserFailedError(EnvironmentModelError):
    """The model that plays the user does not answer, or plays no user."""

    reason = "user-failed"


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
class ScenarioEpisode:
    """An open episode of a scenario. `opened`: resources that are closed with it."""

    scenario: SampledScenario
    scaffold: WorldScaffold
    user_recorder: RolloutRecorder
    traces: EpisodeTraces
    session: ScenarioSession
    opened: ExitStack = field(default_factory=ExitStack)
    submission: bytes = b""
    score: EpisodeScore | None = None

    def watch(self) -> AbstractContextManager[None]:
        """Observe nothing: the calls are in the session."""
        return contextlib.nullcontext()


@dataclass(frozen=True, kw_only=True)
class ScenarioEnvironment:
    """Plays scenarios in the container of a host (`samplers.rollouts.episode.SampledEnvironment`)."""

    host: WorldHost
    artifacts: Artifacts
    find_scenario: Callable[[str], SampledScenario]
    """Returns a scenario with its world by its id."""
    user_gateway: GatewayProcess | None
    """In front of the users' model, which may be the agents' gateway; None where no model plays them."""
    seconds: float
    """Wall time of an episode."""
    max_steps: int
    """Actions after which an episode ends."""
    scorer: Scorer = field(default_factory=Scorer)
    refusal: ClassVar[str] = "world-refused"
    scores_open_episodes: ClassVar[bool] = True

    def begin_traces(self, scaffold: SampledScaffold) -> EpisodeTraces:
        """Return the traces of an episode without calls."""
        log = describe_episode(cast("WorldScaffold", scaffold), GatewayUsage(), None)
        return EpisodeTraces(submission=b"", log=log)

    def open(self, request: RolloutOpening, name: str) -> ScenarioEpisode:
        """Begin an episode, and the conversation with its user.

        Raises:
            InputError: the world breaks a rule, or the state cannot be loaded.
            Transient: there is no container.
            UserFailedError: the user's model does not answer.
        """
        del name
        scaffold = cast("WorldScaffold", request.scaffold)
        uses_user = bool(scaffold.user_model)
        model = GatewayModel(request.plan.model, request.endpoint) if scaffold.uses_model else None
        scenario = self.find_scenario(request.subject.id)
        episode = ScenarioEpisode(
            scenario=scenario,
            scaffold=scaffold,
            user_recorder=RolloutRecorder(
                plan=make_user_plan(request.plan, scaffold),
                retry=request.retry,
                gateway=self.user_gateway if uses_user else None,
                artifacts=self.artifacts,
                statement="",
            ),
            traces=request.traces,
            session=ScenarioSession(model=model, solution=scenario.solution, seconds=self.seconds),
        )
        try:
            self._start(episode)
        except BaseException:
            self.close(episode)
            raise
        return episode

    def evaluate(self, episode: ScenarioEpisode) -> Score | None:
        """Return the score of the present state, and note all states; None where the world's program had a fault."""
        run = episode.session.run
        episode.traces.states[:] = [
            ObservedState(exchange=number, tree=digest) for number, digest in enumerate(run.digests)
        ]
        episode.score = run.evaluate()
        if episode.session.has_fault:
            return None
        return make_score(episode.score, episode.scenario.definition.name)

    def close(self, episode: ScenarioEpisode) -> None:
        """End the episode, and leave its calls and the usage of its user."""
        try:
            episode.opened.close()
        finally:
            usage, traces = episode.user_recorder.usage, episode.traces
            traces.submission = episode.session.collect_submission()
            traces.log = describe_episode(episode.scaffold, usage, episode.score)
            traces.cost = usage.cost

    def _start(self, episode: ScenarioEpisode) -> None:
        user = episode.opened.enter_context(self._open_user(episode))
        began = time.perf_counter()
        server, served = self.host.find(episode.scenario.world)
        run = ScenarioRun(
            server,
            served,
            episode.scenario.definition,
            self.scorer,
            seed=SEED,
            user=user,
            max_steps=self.max_steps,
        )
        episode.session.run = episode.opened.enter_context(run)
        episode.traces.seconds["start"] = time.perf_counter() - began

    @contextlib.contextmanager
    def _open_user(self, episode: ScenarioEpisode) -> Iterator[SimulatedUser | None]:
        """Yield the user of a conversation; None where there is none."""
        definition, scaffold = episode.scenario.definition, episode.scaffold
        if not scaffold.user_model:
            yield make_scripted_user(definition) if scaffold.user == SCRIPTED else None
            return
        with episode.user_recorder.open_access(Budget()) as endpoint:
            yield GuardedUser(ModelUser(GatewayModel(scaffold.user_model, endpoint), definition.task))


def make_score(score: EpisodeScore, name: str) -> Score:
    """Return the score of an episode as tasks have it. `name`: name of the scenario."""
    earning = [check.is_passed for number, check in enumerate(score.checks) if number not in score.kept]
    kept = [score.checks[number].is_passed for number in sorted(score.kept)]
    return Score(
        task=name,
        value=score.reward,
        resolved=score.reward == 1.0,
        f2p_rate=sum(earning) / len(earning) if earning else 0.0,
        p2p_rate=sum(kept) / len(kept) if kept else 1.0,
        explanation=f"{sum(earning)} of {len(earning)} checks passed",
        parts={check.function: float(check.is_passed) for check in score.checks},
        grader=compute_scenario_grader_version(),
    )


def describe_episode(scaffold: WorldScaffold, user: GatewayUsage, score: EpisodeScore | None) -> str:
    """Return the facts that a rollout's log has of its episode: the usage of the user's model, and the checks."""
    about: dict[str, Any] = {"environment": SYNTHETIC, "seed": SEED, "user": scaffold.user}
    if scaffold.user_model:
        names = ("requests", "prompt_tokens", "completion_tokens", "cost")
        about["user_usage"] = {name: getattr(user, name) for name in names}
    if score is not None:
        about["checks"] = score.to_json()["checks"]
    return json.dumps(about)
