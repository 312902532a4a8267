"""A miner and stages that work at once, for tests of the runner: real records, no engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_none

from backends.cluster.local import LocalCluster
from mergemill.errors import InputError, Transient
from mergemill.pipeline import Run, Step
from mergemill.progress import Lines
from taskdb.chains import Scope
from taskdb.records import Candidate, PullRequest, Record, Rejection, Stage
from taskdb.store import Store
from taskdb.tags import Tags
from tests import records

HURRIED = Retrying(retry=retry_if_exception_type(Transient), stop=stop_after_attempt(2), wait=wait_none(), reraise=True)


@dataclass
class Mined:
    pull_request: PullRequest
    result: Candidate | Rejection
    tags: Tags


def miner(source: str, services: Any, *, changes: int = 4) -> Iterator[Mined | InputError]:
    """Changes 1..n, newest first; every third is rejected."""
    for number in range(changes, 0, -1):
        pull = records.pull_request(number, source=source)
        rejected = records.rejection(pull, Stage.MINE, source=source)
        yield Mined(pull, rejected if number % 3 == 0 else records.candidate(pull), records.tags(pull))


@dataclass
class Stages:
    """The stages behind the miner. `faults`: (stage, name) -> what to raise or return instead of the next record."""

    faults: dict[tuple[Stage, str], Exception | str] = field(default_factory=dict)
    calls: list[tuple[Stage, str]] = field(default_factory=list)

    def steps(self) -> tuple[Step, ...]:
        return (
            Step(Stage.BUILD, "environment", self.build),
            Step(Stage.VERIFY, "verification", self.verify),
            Step(Stage.JUDGE, "verdict", self.judge),
            Step(Stage.DERIVE, "task", self.derive),
            Step(Stage.CERTIFY, "certificate", self.certify),
        )

    def build(self, it: Any, services: Any) -> Record | Rejection:
        return self._do(Stage.BUILD, it, it.candidate) or records.environment(it.candidate)

    def verify(self, it: Any, services: Any) -> Record | Rejection:
        return self._do(Stage.VERIFY, it, it.the_environment) or records.verification(it.the_environment)

    def judge(self, it: Any, services: Any) -> Record | Rejection:
        return self._do(Stage.JUDGE, it, it.the_verification) or records.verdict(it.the_verification)

    def derive(self, it: Any, services: Any) -> Record | Rejection:
        return self._do(Stage.DERIVE, it, it.the_verdict) or records.task(it.the_verification, it.candidate)

    def certify(self, it: Any, services: Any) -> Record | Rejection:
        return self._do(Stage.CERTIFY, it, it.the_task) or records.certificate(it.the_task)

    def _do(self, stage: Stage, it: Any, parent: Record) -> Rejection | None:
        self.calls.append((stage, it.candidate.name))
        fault = self.faults.get((stage, it.candidate.name))
        if isinstance(fault, Exception):
            raise fault
        source = it.candidate.source
        return records.rejection(parent, stage, fault, name=it.candidate.name, source=source) if fault else None


def run(
    folder: Path,
    stages: Stages,
    *,
    sources: Sequence[str] = ("git:greet",),
    mine: Any = miner,
    steps: Sequence[Step] | None = None,
    workers: int = 2,
    make_room: Callable[[], None] = lambda: None,
    **scope: Any,
) -> Run:
    """One run over the database in `folder`."""
    with Store.open(f"sqlite:///{folder}/m.db") as store, (folder / "events").open("a") as out:
        services: Any = SimpleNamespace(sandbox=SimpleNamespace(holding=nullcontext))
        done = Run(store, services, LocalCluster(workers=workers), Lines(out=out), workers, patience=HURRIED)
        done.make_room = make_room
        done.work(stages.steps() if steps is None else steps, done.mine(mine, Scope(sources=sources, **scope)))
        return done
