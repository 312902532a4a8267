"""Subjects of a request as a driver and its workers see them: a source that opens samplers, and a sampler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.services import Services
from core.config import Settings
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import PendingRollout
from samplers.gateway.process import Upstream
from samplers.rollouts.episode import SampledEnvironment
from samplers.rollouts.recording import FinishedRollout
from samplers.rollouts.run import RolloutRun, RolloutServices
from samplers.scaffolds.base import SampledScaffold
from samplers.subjects.subject import Subject
from taskdb.records.base import Record
from taskdb.records.rollouts import RolloutPlan
from taskdb.store import Store

CountAnswers = Callable[[], Mapping[str, int]]
"""Returns how the calls of simulated programs were answered: name of a way -> number of calls."""


@dataclass(frozen=True, kw_only=True)
class SubjectSampler:
    """Runs rollouts on this machine, with the services that they need."""

    find_subject: Callable[[str], Subject]
    """Returns a subject by the id of its record."""
    scaffolds: Sequence[SampledScaffold]
    environment: SampledEnvironment[Any]
    shared: RolloutServices
    services: Services
    list_logs: Callable[[RolloutPlan], Sequence[Path]]
    """Returns the gateways' logs of a plan."""
    count_answers: CountAnswers = dict
    """Returns how the calls of simulated programs were answered so far."""

    def run(self, pending: PendingRollout) -> FinishedRollout:
        """Run a rollout and return its records."""
        plan = pending.plan
        scaffolds = {(scaffold.name, scaffold.version): scaffold for scaffold in self.scaffolds}
        return RolloutRun(
            plan=plan,
            subject=self.find_subject(plan.task),
            scaffold=scaffolds[plan.scaffold, plan.scaffold_version],
            environment=self.environment,
            shared=self.shared,
            retry=pending.retry,
        ).run()

    def stop(self) -> None:
        """End the containers of the rollouts that run."""
        self.services.sandbox.stop()

    def forget(self, plan: RolloutPlan) -> None:
        """Remove the gateways' logs of a plan whose record holds them."""
        for path in self.list_logs(plan):
            path.unlink(missing_ok=True)


class SubjectSource(ABC):
    """Subjects of a request. It can be sent to another machine."""

    @abstractmethod
    def list_upstreams(self, settings: Settings) -> list[Upstream]:
        """Return the model servers that rollouts need."""

    @abstractmethod
    def needs_engine(self, settings: Settings) -> bool:
        """Return whether a worker needs a Docker engine."""

    @abstractmethod
    def open_sampler(
        self,
        settings: Settings,
        store: Store,
        progress: SamplingProgress,
        *,
        records: Sequence[Record] | None = None,
        slot: str = "",
    ) -> AbstractContextManager[SubjectSampler]:
        """Open the services that rollouts need on this machine: engine, gateways, and those of the environment.

        Args:
            settings: settings of this machine.
            store: store to read from.
            progress: function that receives messages and the usage of the agents' gateway.
            records: records of all subjects; None where they are read from the store as they are needed.
            slot: slot of a worker process of a cluster, whose logs are in folders of its own.

        Raises:
            MachineError: no engine answers, or a program cannot be installed.
            Transient: a model server does not answer.
            UsageError: a model is needed and no endpoint is named.
        """
