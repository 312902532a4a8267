"""Facts about the repository that stages get, whatever workers and interruptions there are: exploits, flaky tests."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import Transient
from mergemill.execution.environment_families import select_reference
from mergemill.pipeline import node_steps
from mergemill.pipeline.node_steps import NodeWorker
from mergemill.pipeline.pipeline import ExploitClaims, PipelineStep, StageOutcome
from taskdb.records import Certificate, ExploitReference, Rejection, Stage, Task
from taskdb.records.lineage import Lineage
from taskdb.store import Store
from tests import records
from tests.mergemill.stages import FakeStages, run


@dataclass
class RelyingStages(FakeStages):
    """Stages whose certificates rely on exploits of their family as the stage `certify` does."""

    family: str = "a"
    exploits: dict[str, float | None] = field(default_factory=lambda: {"stray-file": 0.0})
    tasks_per_change: int = 1
    barrier: threading.Barrier | None = None

    def derive(self, it: Any, services: Any) -> Any:
        task = super().derive(it, services)
        numbers = range(self.tasks_per_change)
        return [Task(**task.model_dump() | {"name": f"{task.name}-{number}"}) for number in numbers]

    def certify(self, it: Any, services: Any) -> Any:
        made = super().certify(it, services)
        if isinstance(made, Rejection):
            return made
        reference = select_reference(it.require_task(), self.family, it.history.exploited_families, 0.0)
        if self.barrier:
            self.barrier.wait(10)
        changes: dict[str, Any] = {"environment_family": self.family, "exploits_of": reference}
        return made.model_copy(update=changes | {"exploits": {} if reference else self.exploits})


def run_changes(folder: Path, stages: FakeStages, *names: str) -> None:
    """Run the stages over some changes, each after the results of the one before are stored."""
    for name in names:
        run(folder, stages, only=[name])


def load_references(folder: Path) -> dict[str, str | None]:
    """Name of a task -> name of the task on which its certificate relies; None for one with exploits of its own."""
    with Store.open(f"sqlite:///{folder}/m.db") as store:
        stored = store.load_all(Certificate)
    ids = {certificate.name: certificate.parent for certificate in stored}
    assert all((certificate.exploits_of is None) == bool(certificate.exploits) for certificate in stored)
    assert all(c.exploits_of.task == ids[c.exploits_of.name] for c in stored if c.exploits_of)
    return {c.name: c.exploits_of.name if c.exploits_of else None for c in stored}


def make_name(number: int, task: int = 0) -> str:
    return f"ada__greet-{number}.bugfix-{task}"


def test_the_first_task_of_a_family_gets_exploits_and_the_others_name_it(tmp_path: Path) -> None:
    run_changes(tmp_path, RelyingStages(), "ada__greet-2", "ada__greet-1", "ada__greet-4")
    first = make_name(2)
    assert load_references(tmp_path) == {first: None, make_name(1): first, make_name(4): first}


def test_tasks_of_one_change_rely_on_its_first(tmp_path: Path) -> None:
    run_changes(tmp_path, RelyingStages(tasks_per_change=3), "ada__greet-1")
    references = load_references(tmp_path)
    (first,) = (name for name, reference in references.items() if reference is None)
    assert references == {make_name(1, n): None if make_name(1, n) == first else first for n in range(3)}


def test_another_family_gets_exploits_again(tmp_path: Path) -> None:
    run_changes(tmp_path, RelyingStages(), "ada__greet-1")
    run_changes(tmp_path, RelyingStages(family="b"), "ada__greet-2")
    run_changes(tmp_path, RelyingStages(), "ada__greet-4")
    assert load_references(tmp_path) == {make_name(1): None, make_name(2): None, make_name(4): make_name(1)}


def test_a_resumed_run_continues_with_what_is_stored(tmp_path: Path) -> None:
    run_changes(tmp_path, RelyingStages(), "ada__greet-2")
    broken = RelyingStages({(Stage.CERTIFY, "ada__greet-4"): Transient("no answer")})
    run_changes(tmp_path, broken, "ada__greet-4")
    assert load_references(tmp_path) == {make_name(2): None}
    run(tmp_path, RelyingStages())
    assert load_references(tmp_path) == {make_name(2): None, make_name(1): make_name(2), make_name(4): make_name(2)}


def test_no_task_relies_on_one_that_was_rejected_or_failed(tmp_path: Path) -> None:
    faults: Any = {(Stage.CERTIFY, "ada__greet-4"): "exploit-passes", (Stage.CERTIFY, "ada__greet-2"): Transient("x")}
    run_changes(tmp_path, RelyingStages(faults), "ada__greet-4", "ada__greet-2", "ada__greet-1")
    assert load_references(tmp_path) == {make_name(1): None}


def test_tasks_that_are_certified_at_the_same_moment_all_get_exploits(tmp_path: Path) -> None:
    run(tmp_path, RelyingStages(barrier=threading.Barrier(3)), workers=3)
    assert load_references(tmp_path) == {make_name(number): None for number in (1, 2, 4)}


@dataclass
class ClaimingStages(RelyingStages):
    """Stages of which `certify` names the family of a task before it begins, and would meet with other tasks."""

    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(3))

    def certify(self, it: Any, services: Any) -> Any:
        made = super().certify(it, services)
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait(1)
        return made

    def steps(self) -> Sequence[PipelineStep]:
        return [
            replace(step, find_family=lambda *_: self.family) if step.stage is Stage.CERTIFY else step
            for step in super().steps()
        ]


def test_a_task_waits_for_the_exploits_of_its_family(tmp_path: Path) -> None:
    """Three workers certify at once: the first task gets exploits, also where the one before it was rejected."""
    run(tmp_path / "all", ClaimingStages(), workers=3)
    references = load_references(tmp_path / "all")
    (first,) = (name for name, reference in references.items() if reference is None)
    assert references == {make_name(n): None if make_name(n) == first else first for n in (1, 2, 4)}
    faults: Any = {(Stage.CERTIFY, "ada__greet-4"): "exploit-passes", (Stage.CERTIFY, "ada__greet-2"): "exploit-passes"}
    run(tmp_path / "one", ClaimingStages(faults), workers=3)
    assert load_references(tmp_path / "one") == {make_name(1): None}


@pytest.mark.parametrize(("before", "after"), [("", ""), ("a", "b")])
def test_claims_of_other_families_and_of_none_do_not_wait(before: str, after: str) -> None:
    claims = ExploitClaims()
    with claims.hold(before), claims.hold(after):
        pass
    claims.exploited["c"] = ExploitReference(task="1", name="one")
    with claims.hold("c"), claims.hold("c"):
        pass


@dataclass
class ObservingStages(FakeStages):
    """Stages that note for each change whether its repository was steady when its verification began."""

    steady: dict[str, bool] = field(default_factory=dict)

    def verify(self, it: Any, services: Any) -> Any:
        self.steady[it.candidate.name] = it.history.is_steady
        return super().verify(it, services)


def test_a_flaky_test_of_the_repository_is_known_to_later_verifications(tmp_path: Path) -> None:
    stages = ObservingStages({(Stage.VERIFY, "ada__greet-1"): "flaky"})
    run_changes(tmp_path, stages, "ada__greet-2", "ada__greet-1", "ada__greet-4")
    assert stages.steady == {"ada__greet-2": True, "ada__greet-1": True, "ada__greet-4": False}


def make_task_lineage(number: int) -> Lineage:
    candidate = records.make_candidate(records.make_pull_request(number))
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment)
    task = records.make_task(verification, candidate)
    return Lineage(candidate=candidate, environment=environment, verification=verification, tasks=(task,))


def test_workers_of_other_machines_read_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_changes(tmp_path, RelyingStages(), "ada__greet-1")
    (first,) = load_references(tmp_path)
    monkeypatch.setattr(node_steps, "list_steps", RelyingStages().steps)
    monkeypatch.setattr(node_steps, "enable_fetching", lambda services, *_: services)
    settings = SimpleNamespace(operation=SimpleNamespace(image_budget=None))
    images = SimpleNamespace(hold=nullcontext, inspect=lambda _: object())
    services: Any = SimpleNamespace(settings=settings, images=images)
    with Store.open(f"sqlite:///{tmp_path}/m.db") as store:
        events = list(NodeWorker(services, store).process([Stage.CERTIFY], make_task_lineage(2)))
    (outcome,) = (event for event in events if isinstance(event, StageOutcome))
    assert isinstance(outcome.result, Certificate), outcome.result
    assert outcome.result.exploits_of is not None
    assert outcome.result.exploits_of.name == first == make_name(1)
