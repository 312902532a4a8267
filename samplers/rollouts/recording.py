"""Duties of every rollout besides its work.

Access to the gateway, and the records of the requests that went through it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samplers.gateway.process import Budget, GatewayProcess, GatewayUsage, RolloutAccess
from samplers.rollouts.container import GATEWAY_URL
from samplers.rollouts.recorded import RecordedTraffic, read_traffic
from samplers.scaffolds.base import AgentEnd, GatewayEndpoint
from samplers.trajectories.build import build_trajectories
from samplers.trajectories.credit import Credit, share_reward
from taskdb.artifacts import Artifacts
from taskdb.records import Score
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus, Trajectory

MAX_DETAIL = 500
AMOUNTS = ("requests", "prompt_tokens", "completion_tokens", "cost")
"""Fields of a rollout that are those of its usage."""
TURNS = "turns"
"""Name of the gateway for the budget that is the limit of turns."""


@dataclass(frozen=True, kw_only=True)
class FinishedRollout:
    """Records of a rollout."""

    rollout: Rollout
    trajectories: tuple[Trajectory, ...]
    second: FinishedRollout | None = None
    """Records of a second attempt after feedback; None for none."""


def get_log_path(gateway_logs: Path, plan: RolloutPlan) -> Path:
    """Return the gateway's log of a plan; it exists from the first request until the rollout is stored."""
    return gateway_logs / f"{plan.key}.jsonl"


@dataclass(kw_only=True)
class RolloutRecorder:
    """Recorder of a rollout.

    `gateway` is None where no model is used, `retry` the number of earlier infrastructure failures of the plan, and
    `statement` the text by which the main conversation is found.
    """

    plan: RolloutPlan
    retry: int
    gateway: GatewayProcess | None
    artifacts: Artifacts
    statement: str
    credit: Credit = share_reward
    usage: GatewayUsage = field(default_factory=GatewayUsage)
    seconds: dict[str, float] = field(default_factory=dict)
    """`start`, `agent`, `grade` and `all`, as far as they were measured."""

    @contextlib.contextmanager
    def open_access(self, budget: Budget) -> Iterator[GatewayEndpoint]:
        """Give the rollout access to the gateway; its usage is read at the end.

        Raises:
            Transient: the gateway does not answer.
        """
        secret, gateway = secrets.token_urlsafe(24), self.gateway
        if gateway is None:
            yield GatewayEndpoint(container_url="", host_url="", secret=secret)
            return
        access = RolloutAccess(
            secret=secret, model=self.plan.model, sampling=self.plan.sampling, budget=budget, replay=True
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

    def read_usage(self) -> GatewayUsage:
        """Return the amounts that the rollout has used so far."""
        return self.gateway.get_usage(self.plan.key) if self.gateway else GatewayUsage()

    def read_traffic(self) -> RecordedTraffic:
        """Return the records that were recorded of the rollout."""
        return read_traffic(get_log_path(self.gateway.log_dir, self.plan) if self.gateway else None)

    def make_records(
        self,
        end: AgentEnd,
        traffic: RecordedTraffic,
        *,
        failure: tuple[str, str] | None,
        score: Score | None,
        submission: bytes | None,
        at: str,
        plan: RolloutPlan | None = None,
        **fields: Any,
    ) -> FinishedRollout:
        """Return the records of the rollout, whose contents are stored as artifacts.

        Args:
            end: how the agent ended.
            traffic: the records that were recorded.
            failure: reason and detail of a failure of the infrastructure, after which there is no value.
            score: result of grading; None where there is none.
            submission: the submission that was graded; None where nothing could be collected.
            at: time of the start.
            plan: plan of a second attempt; None for the recorder's.
            fields: further fields of `Rollout`.

        Raises:
            Transient: the disk is full.
        """
        reason, detail = failure or self._describe_end(end, traffic)
        status = RolloutStatus.DONE if reason is None else RolloutStatus.FAILED
        valid = score if failure is None else None
        plan, put = plan or self.plan, self.artifacts.put
        rollout = Rollout(
            parent=plan.task,
            name=plan.name,
            plan=plan.key,
            scaffold=plan.scaffold,
            scaffold_version=plan.scaffold_version,
            model=plan.model,
            checkpoint=plan.checkpoint,
            sampling=plan.sampling,
            attempt=plan.attempt,
            retry=self.retry,
            added_system=put(plan.system.encode()) if plan.system else None,
            status=RolloutStatus.INFRASTRUCTURE if failure else status,
            reason=reason,
            detail=detail[:MAX_DETAIL],
            submission=put(submission) if submission is not None else None,
            score=score,
            value=valid.value if valid else None,
            resolved=valid.resolved if valid else False,
            exchanges=put(traffic.raw) if traffic.raw else None,
            in_doubt=traffic.n_doubtful,
            latencies=tuple(round(exchange.seconds, 3) for exchange in traffic.exchanges),
            log=put(end.output.encode()) if end.output else None,
            at=at,
            start_seconds=self._read_clock("start"),
            agent_seconds=self._read_clock("agent"),
            grade_seconds=self._read_clock("grade"),
            seconds=self._read_clock("all"),
            **{**{name: getattr(self.usage, name) for name in AMOUNTS}, **fields},
        )
        return FinishedRollout(rollout=rollout, trajectories=self._build_trajectories(rollout, traffic))

    def _build_trajectories(self, rollout: Rollout, traffic: RecordedTraffic) -> tuple[Trajectory, ...]:
        """Return the conversations of the rollout; none after a failure that is not the agent's."""
        if rollout.status is RolloutStatus.INFRASTRUCTURE:
            return ()
        made = build_trajectories(
            rollout, traffic.exchanges, self.artifacts, statement=self.statement, credit=self.credit
        )
        return tuple(made)

    def _read_clock(self, part: str) -> float:
        return round(self.seconds.get(part, 0.0), 3)

    def _describe_end(self, end: AgentEnd, traffic: RecordedTraffic) -> tuple[str | None, str]:
        """Return why the agent did not end by itself, and a detail.

        A budget that is used up is the reason of the failure that follows. A program that fails once its last request
        failed fails for that, whatever it prints.
        """
        stopped_by, reason = self.usage.stopped_by, end.reason
        if stopped_by:
            return "turn-limit" if stopped_by == TURNS else f"budget-{stopped_by}", end.detail
        last = traffic.exchanges[-1].error if traffic.exchanges else None
        if last is not None and reason in ("agent-failed", "model-failed"):
            return "model-failed", last.detail
        return reason, end.detail
