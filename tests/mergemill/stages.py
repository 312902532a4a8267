"""A miner and stages that return at once, for tests of the runner: real records, no engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_none

from backends.cluster.base import Cluster
from backends.cluster.local import LocalCluster
from core.errors import InputError, Transient
from mergemill.execution.progress import JsonLinesProgress, Progress
from mergemill.execution.quotas import RepositoryQuotas
from mergemill.pipeline.pipeline import PipelineRun, PipelineStep
from taskdb.records import Candidate, PullRequest, Record, Rejection, Stage
from taskdb.records.tags import Tags
from taskdb.store import Store
from tests import records
from tests.scopes import make_scope

FAST_RETRY = Retrying(
    retry=retry_if_exception_type(Transient), stop=stop_after_attempt(2), wait=wait_none(), reraise=True
)


@dataclass
class FakeMinedChange:
    pull_request: PullRequest
    result: Candidate | Rejection
    tags: Tags
    similarity_keys: tuple[int, ...] = ()


def mine_changes(source: str, services: Any, *, changes: int = 4) -> Iterator[FakeMinedChange | InputError]:
    """Changes 1..n, newest first; every third is rejected."""
    for number in range(changes, 0, -1):
        pull = records.make_pull_request(number, source=source)
        rejected = records.make_rejection(pull, Stage.MINE, source=source)
        yield FakeMinedChange(
            pull, rejected if number % 3 == 0 else records.make_candidate(pull), records.make_tags(pull)
        )


@dataclass
class FakeStages:
    """Stages after the miner. `faults`: (stage, name) -> exception to raise, or reason of a rejection to return."""

    faults: dict[tuple[Stage, str], Exception | str] = field(default_factory=dict)
    calls: list[tuple[Stage, str]] = field(default_factory=list)

    def steps(self) -> tuple[PipelineStep, ...]:
        return (
            PipelineStep(Stage.BUILD, "environment", self.build),
            PipelineStep(Stage.VERIFY, "verification", self.verify),
            PipelineStep(Stage.JUDGE, "verdict", self.judge),
            PipelineStep(Stage.DERIVE, "task", self.derive),
            PipelineStep(Stage.CERTIFY, "certificate", self.certify),
        )

    def build(self, it: Any, services: Any) -> Record | Rejection:
        return self._apply_fault(Stage.BUILD, it, it.candidate) or records.make_environment(it.candidate)

    def verify(self, it: Any, services: Any) -> Record | Rejection:
        return self._apply_fault(Stage.VERIFY, it, it.require_environment()) or records.make_verification(
            it.require_environment()
        )

    def judge(self, it: Any, services: Any) -> Record | Rejection:
        return self._apply_fault(Stage.JUDGE, it, it.require_verification()) or records.make_verdict(
            it.require_verification()
        )

    def derive(self, it: Any, services: Any) -> Record | Rejection:
        return self._apply_fault(Stage.DERIVE, it, it.require_verdict()) or records.make_task(
            it.require_verification(), it.candidate
        )

    def certify(self, it: Any, services: Any) -> Record | Rejection:
        return self._apply_fault(Stage.CERTIFY, it, it.require_task()) or records.make_certificate(it.require_task())

    def _apply_fault(self, stage: Stage, it: Any, parent: Record) -> Rejection | None:
        self.calls.append((stage, it.candidate.name))
        fault = self.faults.get((stage, it.candidate.name))
        if isinstance(fault, Exception):
            raise fault
        source = it.candidate.source
        return records.make_rejection(parent, stage, fault, name=it.candidate.name, source=source) if fault else None


def run(
    folder: Path,
    stages: FakeStages,
    *,
    sources: Sequence[str] = ("git:greet",),
    mine: Any = mine_changes,
    steps: Sequence[PipelineStep] | None = None,
    workers: int = 2,
    make_room: Callable[[], None] = lambda: None,
    max_tasks: int | None = None,
    observe: Callable[[Progress], Progress] = lambda progress: progress,
    quotas: RepositoryQuotas | None = None,
    cluster: Cluster | None = None,
    **scope: Any,
) -> PipelineRun:
    """One run over the database in `folder`; `observe` returns what receives its results."""
    with (
        Store.open(f"sqlite:///{folder}/m.db") as store,
        (folder / "events").open("a") as out,
        observe(JsonLinesProgress(out=out)) as progress,
    ):
        services: Any = SimpleNamespace(images=SimpleNamespace(hold=nullcontext))
        cluster = cluster or LocalCluster(workers=workers)
        done = PipelineRun(store, services, cluster, progress, workers, retry_policy=FAST_RETRY)
        done.make_room = make_room
        done.max_tasks = max_tasks
        done.quotas = quotas or RepositoryQuotas()
        done.process(stages.steps() if steps is None else steps, done.mine(mine, make_scope(sources=sources, **scope)))
        return done
