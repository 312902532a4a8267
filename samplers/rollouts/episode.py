"""Interface between a rollout and the environment of its subject: an episode, and its traces for the record.

Start, tools and score of an episode are the environment's; access to the model, failures, times and the record are the
same for every rollout.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from core.episodes.player import EpisodeEnvironment
from samplers.gateway.process import GatewayUsage
from samplers.scaffolds.base import GatewayEndpoint, SampledScaffold
from samplers.subjects.subject import Subject
from taskdb.records import Score
from taskdb.records.rollouts import ObservedState, RolloutPlan


@dataclass(kw_only=True)
class EpisodeTraces:
    """Traces of an episode in the record of its rollout. They are filled as the episode goes on, whatever ends it."""

    submission: bytes | None = None
    """None where nothing could be collected."""
    score: Score | None = None
    states: list[ObservedState] = field(default_factory=list)
    simulated_calls: int = 0
    log: str = ""
    """Facts about the episode, for scaffolds that print nothing."""
    cost: float = 0.0
    """Cost of other models than the agent's."""
    seconds: dict[str, float] = field(default_factory=dict)
    """`start`, `agent`, `grade` and `all`, as far as they were measured."""


@dataclass(frozen=True, kw_only=True)
class RolloutOpening:
    """A rollout that begins, as an environment sees it. `retry`: number of earlier infrastructure failures."""

    subject: Subject
    plan: RolloutPlan
    retry: int
    scaffold: SampledScaffold
    endpoint: GatewayEndpoint
    read_usage: Callable[[], GatewayUsage]
    """Returns the amounts that the rollout has used so far."""
    traces: EpisodeTraces
    may_continue: bool = False
    """Whether a further message of the user may follow after the agent has ended."""


class SampledEpisode(Protocol):
    """An open episode."""

    @property
    def session(self) -> Any:
        """The episode as its scaffold sees it."""
        ...

    submission: bytes
    """Submission that `evaluate` scores, where that needs one."""

    def watch(self) -> AbstractContextManager[None]:
        """Observe the episode while the agent works."""
        ...


SampledEpisodeT = TypeVar("SampledEpisodeT", bound=SampledEpisode)


class SampledEnvironment(EpisodeEnvironment[SampledEpisodeT, RolloutOpening, Any], Protocol[SampledEpisodeT]):
    """Environment of subjects of a kind, whose episodes are scored by a `Score`, or None where it has a fault."""

    @property
    def refusal(self) -> str:
        """Reason of a rollout whose subject is refused."""
        ...

    @property
    def scores_open_episodes(self) -> bool:
        """Whether an episode is scored while it is open, as its state ends with it; else its submission is graded."""
        ...

    def begin_traces(self, scaffold: SampledScaffold) -> EpisodeTraces:
        """Return the traces of a rollout whose episode cannot be opened."""
        ...
