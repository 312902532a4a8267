"""Pruning takes what this database has made and no longer needs, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox.docker import DockerSandbox
from builders import layers
from builders.bases import ensure_base
from taskdb.records import BuildPlan, Environment, Stage
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.cli import run_mergemill
from tests.containers import make_services


class FakeEngine:
    """The real engine, with tiny images named as the builders name theirs; those made here are gone afterwards."""

    def __init__(self, folder: Path) -> None:
        self.services = make_services(folder)
        self.sandbox: DockerSandbox = self.services.sandbox  # type: ignore[assignment]
        self.base = ensure_base("python", "3.11", self.services).name
        self.made: list[str] = []

    def image(self, name: str, layer: str, base: str | None = None) -> str:
        """Make an image of one file."""
        ran, image = self.sandbox.images.build(
            base or self.base,
            ["touch", f"/{uuid.uuid4().hex}"],
            name,
            limits=self.services.build_limits(),
            network=False,
            labels={layers.LAYER_LABEL: layer},
        )
        assert image is not None, ran.output
        self.made.append(name)
        return name

    def environment(self) -> Environment:
        """An environment with an image and a dependency layer of its own."""
        plan = BuildPlan.model_validate(records.PLAN.model_dump() | {"dependency_steps": (f"true {uuid.uuid4()}",)})
        below = self.image(f"mergemill/deps:{plan.dependency_key[:16]}", "dependencies")
        image = self.image(f"mergemill/env:prune-test-{uuid.uuid4().hex[:16]}", "source", below)
        number = len(self.made)
        return records.make_environment(
            records.make_candidate(records.make_pull_request(number)), plan=plan, image=image
        )


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FakeEngine]:
    engine = FakeEngine(tmp_path)
    yield engine
    for name in reversed(engine.made):
        engine.sandbox.images.remove(name)


def keep(store: Store, number: int, environment: Environment, *, rejected: bool = False, task: bool = False) -> None:
    """Write the chain of an environment: to a task, to a rejection by the verifier, or waiting for it."""
    pull = records.make_pull_request(number)
    store.add_mined_changes((pull, records.make_candidate(pull), 0.1))
    verification = records.make_verification(environment)
    results = [(Stage.BUILD, environment)]
    if rejected:
        results.append((Stage.VERIFY, records.make_rejection(environment, Stage.VERIFY, "flaky")))  # type: ignore[arg-type]
    if task:
        candidate = records.make_candidate(pull)
        derived = records.make_task(verification, candidate, image=environment.image, plan=environment.plan)
        results += [(Stage.VERIFY, verification), (Stage.DERIVE, derived)]  # type: ignore[list-item]
        results.append((Stage.CERTIFY, records.make_rejection(derived, Stage.CERTIFY, "noop-passes")))  # type: ignore[arg-type]
    for stage, result in results:
        store.add_stage_results(
            StageResult(stage=stage, result=result, source=pull.source, name=pull.name, seconds=1.0)
        )


@pytest.mark.docker
def test_only_images_that_nothing_needs_are_removed(engine: FakeEngine, tmp_path: Path) -> None:
    waiting, rejected, tasked, elsewhere = (engine.environment() for _ in range(4))
    foreign = engine.image(f"mergemill-test/foreign:{uuid.uuid4().hex[:8]}", "source")
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        keep(store, 2, waiting)
        keep(store, 4, rejected, rejected=True)
        keep(store, 6, tasked, task=True)

    def names(*words: str) -> list[str]:
        return [row["name"] for row in run_mergemill("images", "prune", "--json", *words, cwd=tmp_path).lines]

    unneeded = [rejected.image, f"mergemill/deps:{rejected.plan.dependency_key[:16]}"]
    everything = names("--all", "--dry-run")
    assert set(everything) >= {*unneeded, elsewhere.image}
    assert not {waiting.image, tasked.image, foreign, engine.base} & set(everything)
    assert names("--dry-run") == unneeded
    assert names() == unneeded
    assert names() == []
    for environment, there in ((waiting, True), (rejected, False), (tasked, True), (elsewhere, True)):
        below = f"mergemill/deps:{environment.plan.dependency_key[:16]}"
        for name in (environment.image, below):
            assert (engine.sandbox.images.inspect(name) is not None) is there, name
    assert engine.sandbox.images.inspect(foreign) is not None
