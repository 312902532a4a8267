"""Records of agents on tasks: rollouts, their trajectories, and which of these are selected for training."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from taskdb.records import Score
from taskdb.records.base import LATER, MEASURED, ArtifactHash, Part, Record, Seconds


class RolloutStatus(StrEnum):
    """How a rollout ended. Only `done` and `failed` are results of the agent."""

    DONE = "done"
    """The agent ended by itself."""
    FAILED = "failed"
    """A limit, a budget or a failure of the agent or its model ended it; the state that it had changed was graded."""
    INFRASTRUCTURE = "infrastructure"
    """Engine, gateway, network, disk or grading failed: it has no value, and is tried again."""


class Leak(Part):
    """An attempt to get at the secrets that a task hides, found in the actions that the agent did."""

    name: str
    """Such as `git-history`; docs/guide/agents/rollouts.md lists the names."""
    exchange: int
    """Number of the recorded exchange whose answer has it, from 0."""
    quote: str
    """Text that the agent wrote, at most 200 characters."""


class ObservedState(Part):
    """State of the agent's tree when a request was sent, or of a world after an action."""

    exchange: int
    """Number of the recorded exchange, from 0; of a world, number of the action, where 0 is the start."""
    tree: str
    """Git tree of the agent's files, or sha256 of the world's state."""


class RolloutPlan(Part):
    """Plan that a rollout is before it runs. Equal plans are the same rollout."""

    task: str
    """Id of the Task or Scenario."""
    name: str
    """Name of the task or scenario."""
    scaffold: str
    scaffold_version: str
    model: str
    checkpoint: str = ""
    """Names weights that are served under a model name, such as a training step."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Sampling settings by the names of the OpenAI API."""
    attempt: int
    """1-based."""
    system: str = ""
    """Text that is added to the agent's system prompt; empty for none."""

    @property
    def key(self) -> str:
        """Sha256 (hex) of the plan's canonical JSON, which has a system text only where there is one."""
        fields = self.model_dump(mode="json", exclude=None if self.system else {"system"})
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class Rollout(Record):
    """An attempt of an agent at a task or scenario. Its identity is its plan and the number of its retry."""

    parent: str
    """Id of the Task, or of the Scenario where `environment` is `synthetic`."""
    name: str
    """Name of the task or scenario."""
    plan: str
    """Key of the `RolloutPlan`."""
    scaffold: str
    scaffold_version: str
    model: str
    checkpoint: str = ""
    sampling: dict[str, Any] = Field(default_factory=dict)
    attempt: int
    retry: int = 0
    """Number of earlier rollouts of this plan that ended by an infrastructure failure."""
    added_system: Annotated[ArtifactHash | None, LATER] = None
    """Text that was added to the agent's system prompt; null for none."""
    system_exchange: Annotated[int | None, MEASURED] = None
    """Number of the first recorded exchange whose request has that text, from 0; null where none has."""
    delivered: Annotated[dict[str, int | None], MEASURED] = Field(default_factory=dict)
    """Instruction besides the statement -> number of the first recorded exchange whose request has it, from 0; null
    where none has. Keys are sources, with a number where there may be several: `system`, `skill-1`, `turn-2`."""
    feedback_of: Annotated[str, LATER] = ""
    """Id of the first attempt, where this one goes on with its conversation after broken instructions were named; its
    requests, tokens and cost are those that it added."""
    origin: str = ""
    """Where an imported rollout comes from; empty for a rollout of our own."""
    environment: Annotated[str, MEASURED] = ""
    """That of its task, `verified`, `simulated` or `none`, or `synthetic` for a scenario of a world; empty for rollouts
    of tasks by earlier versions."""
    simulated_calls: Annotated[int, MEASURED] = 0
    """Programs of the agent that a simulator answered for."""
    status: Annotated[RolloutStatus, MEASURED]
    reason: Annotated[str | None, MEASURED] = None
    """Why it did not end by itself, such as `time-limit`."""
    detail: Annotated[str, MEASURED] = ""
    """A line for people."""
    submission: Annotated[ArtifactHash | None, MEASURED] = None
    """Submission that was graded: a patch, findings as JSON, or JSON of a patch with its conversation; null where
    nothing could be collected.

    Of a scenario the calls
    that were made, a JSON list of `{"tool", "arguments"}`; they and the initial state determine the state that the
    checks looked at."""
    score: Annotated[Score | None, MEASURED] = None
    value: Annotated[float | None, MEASURED] = None
    """Reward 0..1; null without a score, never 0 for an infrastructure failure."""
    resolved: Annotated[bool, MEASURED] = False
    leaks: Annotated[tuple[Leak, ...], MEASURED] = ()
    exchanges: Annotated[ArtifactHash | None, MEASURED] = None
    """The gateway's log of it (JSON lines), as `samplers.gateway.exchanges` describes."""
    requests: Annotated[int, MEASURED] = 0
    prompt_tokens: Annotated[int, MEASURED] = 0
    completion_tokens: Annotated[int, MEASURED] = 0
    cost: Annotated[float, MEASURED] = 0.0
    in_doubt: Annotated[int, MEASURED] = 0
    """Requests that were under way when gateway or machine died; an upstream without idempotency keys may bill them."""
    states: Annotated[tuple[ObservedState, ...], MEASURED] = ()
    start_seconds: Seconds = 0.0
    """Start of the container, with the programs of the scaffold."""
    agent_seconds: Seconds = 0.0
    grade_seconds: Seconds = 0.0
    seconds: Seconds = 0.0
    latencies: Annotated[tuple[float, ...], MEASURED] = ()
    """Seconds of each request, in order."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
    """Output of the agent's program."""
    at: Annotated[str, MEASURED] = ""
    """Time of its start (ISO 8601, UTC)."""


class TrajectoryRole(StrEnum):
    """Part that a trajectory is in its rollout."""

    MAIN = "main"
    SUB_AGENT = "sub-agent"
    SIDE = "side"
    """A call outside of the work, such as a call for a title or a summary."""


class Trajectory(Record):
    """A root of the prefix tree of a rollout's requests: a conversation that only grew."""

    parent: str
    """Id of the Rollout."""
    name: str
    """Name of the task."""
    root: int
    """Number of the root in its rollout, from 0, in the order of first requests."""
    environment: Annotated[str, MEASURED] = ""
    """As in Rollout."""
    builder: int
    """Version of the rules that make trajectories of requests."""
    role: Annotated[TrajectoryRole, MEASURED]
    scaffold: Annotated[str, MEASURED]
    model: Annotated[str, MEASURED]
    attempt: Annotated[int, MEASURED]
    value: Annotated[float | None, MEASURED]
    """Reward of the rollout, or this root's part of it."""
    n_requests: Annotated[int, MEASURED]
    n_branches: Annotated[int, MEASURED]
    """Leaves of its tree: 1 where no history was edited."""
    prompt_tokens: Annotated[int, MEASURED]
    completion_tokens: Annotated[int, MEASURED]
    content: Annotated[ArtifactHash, MEASURED]
    """JSON of its requests and answers, as `samplers.trajectories` describes."""
    metrics: Annotated[dict[str, float], MEASURED]
    """Values of the rules of rejection sampling, by rule."""
    has_token_ids: Annotated[bool, MEASURED]
    """Whether the upstream gave the token ids of every request."""


class TrajectorySelection(Record):
    """Result of rejection sampling for a trajectory. Of several of a trajectory the newest counts."""

    parent: str
    """Id of the Trajectory."""
    name: str
    selected: bool
    reason: str | None
    """The first rule that refused it; null where it is selected."""
    value: float | None
    """Value of that rule."""
    rules: str
    """Hash of the rules' settings."""
    at: str
    """Time of the selection (ISO 8601, UTC); part of the identity, as each selection is kept."""
