"""One small task in real containers, with a gateway in front of a scripted model, for tests of scaffolds."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from backends.services import Services
from core.config import Settings
from mergemill.agents.sampling.programs import make_program_store
from mergemill.agents.sampling.task_sampler import make_oracle
from mergemill.execution.services import make_services as make_usual_services
from samplers.gateway.exchanges import Exchange
from samplers.gateway.process import Budget, GatewayProcess, Upstream
from samplers.programs.store import ProgramStore
from samplers.rollouts.container_environment import ContainerEnvironment
from samplers.rollouts.recorded import read_traffic
from samplers.rollouts.recording import get_log_path
from samplers.rollouts.run import RolloutRun, RolloutServices
from samplers.scaffolds.base import AgentLimits, Scaffold
from samplers.subjects.guidance import Guidance
from samplers.subjects.task_subject import make_task_subject
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.records.rollouts import Rollout, RolloutPlan, Trajectory
from taskdb.store import Store
from tests.samplers.scripted_model import Answer, ModelRequest, ScriptedModel
from tests.samplers.shell_player import ShellPlayer
from tests.verifiers.shop import open_shop_task
from verifiers import select_reward

PATCH_FILE = "/tmp/change.patch"
LIMITS = AgentLimits(seconds=120.0, turns=30)


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """What a rollout leaves: its record, what was recorded, and what the model was sent."""

    rollout: Rollout
    trajectories: Sequence[Trajectory]
    exchanges: Sequence[Exchange]
    requests: Sequence[ModelRequest]
    patch: bytes
    log: str
    """Output of the agent's program."""
    second: Rollout | None = None
    """Record of a second attempt after feedback; None for none."""

    def read_sent_text(self) -> str:
        """Return all that the model was sent."""
        return "\n".join(request.raw.decode() for request in self.requests)


@dataclass(frozen=True, kw_only=True)
class AgentBench:
    """The task, and what its rollouts share."""

    services: Services
    task: Task
    programs: ProgramStore
    gold: bytes

    def script_gold(self) -> list[str]:
        """Return the commands that solve the task."""
        write = f"cat > {PATCH_FILE} <<'END_OF_PATCH'\n{self.gold.decode()}END_OF_PATCH"
        return [write, f"git apply {PATCH_FILE} && rm {PATCH_FILE} && git status --short"]

    def make_player(self) -> ShellPlayer:
        """Return a model that solves the task where its statement is in the prompt."""
        first = self.task.problem_statement.strip().splitlines()[0]
        return ShellPlayer({re.escape(first): self.script_gold()})

    def run(
        self,
        scaffold: Scaffold,
        answer: Answer,
        *,
        limits: AgentLimits = LIMITS,
        sampling: Mapping[str, Any] | None = None,
        system: str = "",
        guidance: Guidance | None = None,
        gives_feedback: bool = False,
    ) -> BenchResult:
        """Run one rollout. `guidance`: in place of the task's own."""
        subject = make_task_subject(self.task, self.services, select_reward(self.task).submission)
        if guidance is not None:
            subject = replace(subject, guidance=guidance)
        plan = RolloutPlan(
            task=self.task.id,
            name=self.task.name,
            scaffold=scaffold.name,
            scaffold_version=scaffold.version,
            model="scripted",
            checkpoint=uuid.uuid4().hex,
            sampling=dict(sampling or {}),
            attempt=1,
            system=system,
        )
        with TemporaryDirectory(prefix="mergemill-agents-") as name, ScriptedModel(answer) as model:
            folder = Path(name)
            (socket := folder / "agents" / "gateway.sock").parent.mkdir()
            upstream = Upstream(url=model.url, dialect="openai", key="", first_pause=0.02)
            with GatewayProcess(upstream, folder / "logs", agent_socket=socket, port=0) as gateway:
                environment = ContainerEnvironment(
                    services=self.services,
                    programs=self.programs,
                    agent_socket=socket,
                    limits=limits,
                    find_oracle=lambda _: make_oracle(self.task, self.services),
                )
                finished = RolloutRun(
                    plan=plan,
                    subject=subject,
                    scaffold=scaffold,
                    environment=environment,
                    shared=RolloutServices(
                        artifacts=self.services.artifacts,
                        clock=self.services.clock,
                        gateway=gateway,
                        budget=Budget(requests=100, turns=limits.turns),
                        gives_feedback=gives_feedback,
                    ),
                    retry=0,
                ).run()
                exchanges = read_traffic(get_log_path(gateway.log_dir, plan)).exchanges
            rollout = finished.rollout
            return BenchResult(
                rollout=rollout,
                trajectories=finished.trajectories,
                second=finished.second.rollout if finished.second else None,
                exchanges=exchanges,
                requests=tuple(model.requests),
                patch=self._read(rollout.submission),
                log=self._read(rollout.log).decode(errors="replace"),
            )

    def _read(self, artifact: str | None) -> bytes:
        return self.services.artifacts.get(artifact) if artifact else b""


def open_bench(folder: Path, name: str) -> AgentBench:
    """Open the bench of a certified task in a folder's database."""
    settings = Settings(db=f"sqlite:///{folder}/mergemill.db", store=folder / "mergemill-store")
    with Store.open(settings.storage.db, create=False) as store:
        rows = queries.list_tasks(store, TaskFilters(status="certified"), columns=["id", "name"])
        (task,) = store.get_many(Task, [row["id"] for row in rows if row["name"] == name]).values()
    return _make_bench(task, make_usual_services(settings, engine=True))


def make_bench(factory: pytest.TempPathFactory) -> AgentBench:
    """Make the bench of the verified task of a test run."""
    shop = open_shop_task(factory, test_timeout=60, memory_mb=2048, disk_mb=1024, pids=512)
    return _make_bench(shop.task, shop.services)


def _make_bench(task: Task, services: Services) -> AgentBench:
    gold = services.artifacts.get(task.gold_patch)
    return AgentBench(services=services, task=task, programs=make_program_store(services), gold=gold)
