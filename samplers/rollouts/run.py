"""Run a rollout: gateway access, an episode of the subject's environment, the scaffold's hooks, and the record of it.

The actions that the agent did, failed to do, or was stopped at is a result (`done`, `failed`) and is scored as it
stands. A failure of engine, gateway, upstream, disk, grading or of a model of the environment is none
(`infrastructure`): it has no value, and the plan stays open.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.errors import InputError, Transient
from evaluation.instructions.submission import FeedbackTurn
from samplers.gateway.process import Budget, GatewayProcess
from samplers.rollouts.container import LostContainerError
from samplers.rollouts.conversation import pack_submission
from samplers.rollouts.environment import EnvironmentModelError
from samplers.rollouts.episode import RolloutOpening, SampledEnvironment, SampledEpisode
from samplers.rollouts.feedback import SUFFIX, write_feedback
from samplers.rollouts.recorded import RecordedTraffic
from samplers.rollouts.recording import AMOUNTS, FinishedRollout, RolloutRecorder
from samplers.scaffolds.base import AgentEnd, GatewayEndpoint, SampledScaffold
from samplers.scaffolds.delivery import NOT_DELIVERED, describe_undelivered, find_undelivered
from samplers.subjects.subject import Subject
from samplers.trajectories.credit import Credit, share_reward
from taskdb.artifacts import Artifacts
from taskdb.records import Score
from taskdb.records.instructions import InstructionSource
from taskdb.records.rollouts import RolloutPlan, RolloutStatus


@dataclass(frozen=True, kw_only=True)
class RolloutServices:
    """Services that all rollouts of an invocation share, whatever their subjects are."""

    artifacts: Artifacts
    clock: Callable[[], str]
    gateway: GatewayProcess | None
    """In front of the agents' model; None where no scaffold uses a model."""
    budget: Budget
    gives_feedback: bool = False
    """Whether an agent that broke instructions goes on after they are named to it."""
    credit: Credit = share_reward
    """Divides a rollout's reward among its trajectories."""


@dataclass(kw_only=True)
class RolloutRun:
    """A rollout while it runs. `retry`: number of earlier infrastructure failures of its plan."""

    plan: RolloutPlan
    subject: Subject
    scaffold: SampledScaffold
    environment: SampledEnvironment[Any]
    shared: RolloutServices
    retry: int

    def __post_init__(self) -> None:
        self.end = AgentEnd()
        self.first: FinishedRollout | None = None
        self.feedback: FeedbackTurn | None = None
        self.episode: SampledEpisode | None = None
        self.traces = self.environment.begin_traces(self.scaffold)
        self.recorder = RolloutRecorder(
            plan=self.plan,
            retry=self.retry,
            gateway=self.shared.gateway if self.scaffold.uses_model else None,
            artifacts=self.shared.artifacts,
            statement=self.subject.statement,
            credit=self.shared.credit,
            seconds=self.traces.seconds,
        )

    def run(self) -> FinishedRollout:
        """Run it and return its records.

        Raises:
            CancelledRunError: Ctrl-C; nothing is recorded, and the gateway's logs are kept for the next run.
        """
        self._begin()
        failure = self._refuse_sources() or self._play()
        if self.first is None:
            return self._finish(failure)
        return self.first if self.feedback is None else replace(self.first, second=self._finish(failure))

    def _begin(self) -> None:
        """Keep the time at which an attempt begins."""
        self._started, self._at = time.perf_counter(), self.shared.clock()

    def _finish(self, failure: tuple[str, str] | None) -> FinishedRollout:
        """Grade the submission and return the records of the attempt; `failure`: reason and detail, None for none."""
        recorder, traces = self.recorder, self.traces
        traffic = recorder.read_traffic()
        system_exchange = traffic.find_system(self.plan.system) if self.plan.system else None
        delivered = traffic.find_delivery(self.subject.guidance) if self.scaffold.uses_model else {}
        failure = failure or traffic.find_upstream_failure(recorder.usage)
        if self.subject.grades_conversation and self.scaffold.uses_model and traces.submission is not None:
            traces.submission = pack_submission(
                traces.submission, traffic.exchanges, self.subject, delivered, self.feedback
            )
        failure = failure or self._find_lost_system(traffic, system_exchange)
        failure = failure or self._find_lost_sources(traffic, delivered) or self._grade()
        traces.seconds["all"] = time.perf_counter() - self._started
        before = self.first.rollout if self.first else None
        added = {name: getattr(recorder.usage, name) - (getattr(before, name) if before else 0) for name in AMOUNTS}
        return recorder.make_records(
            replace(self.end, output=self.end.output or traces.log),
            traffic,
            failure=failure,
            score=traces.score,
            submission=traces.submission,
            at=self._at,
            plan=self.plan,
            feedback_of=before.id if before else "",
            leaks=traffic.find_leaks(self.subject),
            system_exchange=system_exchange,
            delivered=delivered,
            states=tuple(traces.states),
            environment=self.subject.environment,
            simulated_calls=traces.simulated_calls,
            **{**added, "cost": added["cost"] + traces.cost},
        )

    def _find_lost_system(self, traffic: RecordedTraffic, system_exchange: int | None) -> tuple[str, str] | None:
        """Return reason and detail of a failure where the text for the system prompt reached the model in no request.

        Such a rollout would show how the model does without it.
        """
        if not self.plan.system or not traffic.exchanges or system_exchange is not None:
            return None
        return "system-not-delivered", f"none of {len(traffic.exchanges)} requests has the text of --system"

    def _refuse_sources(self) -> tuple[str, str] | None:
        """Return reason and detail where the scaffold cannot give the model all instructions of its subject."""
        missing = find_undelivered(self.scaffold, self.subject.guidance.sources)
        return (NOT_DELIVERED, describe_undelivered(self.scaffold, missing)) if missing else None

    def _find_lost_sources(
        self, traffic: RecordedTraffic, delivered: Mapping[str, int | None]
    ) -> tuple[str, str] | None:
        """Return reason and detail of a failure where an instruction of the subject reached the model in no request.

        A later message of the user that was never sent, as a limit or a failure ended the agent before, is none.
        """
        has_ended_itself = self.end.reason is None and not self.recorder.usage.stopped_by
        lost = [
            key
            for key, exchange in delivered.items()
            if exchange is None and (has_ended_itself or not key.startswith(InstructionSource.TURN))
        ]
        if not lost or not traffic.exchanges:
            return None
        return NOT_DELIVERED, f"none of {len(traffic.exchanges)} requests has {', '.join(lost)} of the guidance"

    def _play(self) -> tuple[str, str] | None:
        """Let the agent work in an episode; return reason and detail of a failure that is not the agent's."""
        try:
            with self.recorder.open_access(self.shared.budget) as endpoint, self._open_episode(endpoint) as episode:
                self._work(episode)
                self._give_feedback(episode)
        except EnvironmentModelError as error:
            return error.reason, error.format_line()
        except Transient as error:
            return "engine-failed", error.format_line()
        except InputError as error:
            return self.environment.refusal, error.format_line()
        return None

    @contextlib.contextmanager
    def _open_episode(self, endpoint: GatewayEndpoint) -> Iterator[SampledEpisode]:
        request = RolloutOpening(
            subject=self.subject,
            plan=self.plan,
            retry=self.retry,
            scaffold=self.scaffold,
            endpoint=endpoint,
            read_usage=self.recorder.read_usage,
            traces=self.traces,
            may_continue=self._may_continue,
        )
        self.episode = episode = self.environment.open(request, self.plan.key)
        try:
            yield episode
        finally:
            self.environment.close(episode)

    def _work(self, episode: SampledEpisode) -> None:
        """Run the first three hooks, and score an episode whose state ends with it."""
        with self._measure("agent"), episode.watch():
            self.scaffold.agent_preprocess(episode.session)
            self.end = self.scaffold.agent_run(episode.session)
        self._collect(episode)
        if self.environment.scores_open_episodes:
            with self._measure("grade"):
                self.traces.score = self.environment.evaluate(episode)

    def _collect(self, episode: SampledEpisode) -> None:
        """Read the submission, unless the container is gone."""
        try:
            self.traces.submission = self.scaffold.agent_postprocess(episode.session)
        except LostContainerError as error:
            reason = self.end.reason or "container-lost"
            self.end = AgentEnd(reason=reason, detail=str(error), output=self.end.output)

    @property
    def _may_continue(self) -> bool:
        """Whether a second attempt may follow."""
        return self.shared.gives_feedback and self.subject.grades_conversation and self.scaffold.continues

    def _give_feedback(self, episode: SampledEpisode) -> None:
        """Finish the first attempt, name the instructions that it broke, if any, and let the agent go on.

        An attempt that a limit or a failure ended, or that has no value, gets no second one.
        """
        if not self._may_continue or self.end.reason is not None or self.traces.submission is None:
            return
        # The gateway goes on counting, so the first attempt has the amounts of this moment.
        self.recorder.usage = self.recorder.read_usage()
        self.first = self._finish(None)
        broken = episode.session.list_broken(self.traces.submission)
        if self.first.rollout.status is RolloutStatus.INFRASTRUCTURE or not broken:
            return
        message, guidance = write_feedback(broken), self.subject.guidance
        turns = (*guidance.turns, message)
        self.feedback = FeedbackTurn(turn=len(turns) + 1, constraints=tuple(item.name for item in broken))
        self.subject = replace(self.subject, guidance=replace(guidance, turns=turns))
        self.plan = self.plan.model_copy(update={"scaffold": f"{self.plan.scaffold}{SUFFIX}"})
        # What remains of the first attempt is in its records.
        self.traces.submission = self.traces.score = None
        self._begin()
        with self._measure("agent"):
            self.end = self.scaffold.agent_continue(episode.session, message)
        self._collect(episode)

    def _grade(self) -> tuple[str, str] | None:
        """Grade the submission, an empty submission where none was collected; return why it could not be graded."""
        if self.environment.scores_open_episodes:
            return None
        submission = self.traces.submission or b""
        with self._measure("grade"):
            try:
                self.traces.score = score = self.scaffold.calculate_reward(self.subject, submission, self._evaluate)
            except (Transient, InputError) as error:
                return "not-graded", error.format_line()
        return ("not-graded", score.infrastructure_error) if score.infrastructure_error else None

    def _evaluate(self, submission: bytes) -> Score:
        """Return the score of a submission of the episode, which has ended."""
        assert self.episode is not None  # noqa: S101 - only an episode that was opened is graded
        self.episode.submission = submission
        score: Score = self.environment.evaluate(self.episode)
        return score

    @contextlib.contextmanager
    def _measure(self, part: str) -> Iterator[None]:
        """Measure the seconds of a part of the rollout."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.traces.seconds[part] = time.perf_counter() - began
