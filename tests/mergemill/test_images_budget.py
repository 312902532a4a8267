"""A run keeps to its disk budget: after builds, and when the disk gets short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mergemill.cli.options import settings_of
from mergemill.config import Settings
from mergemill.errors import Transient, UsageError
from mergemill.images import budget as budgets
from mergemill.images.budget import Budget
from taskdb.records import Stage
from taskdb.store import Store
from tests.boxes import make_services
from tests.mergemill.engine import JUST_NOW, TinyEngine
from tests.mergemill.stages import Stages, run


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(tmp_path)
    yield engine
    engine.close()


def budget_of(engine: TinyEngine, allowed: str, said: list[str]) -> Budget:
    services = replace(make_services(engine.folder, image_budget=allowed), sandbox=engine)  # type: ignore[type-var]
    return Budget(services, Store.open(f"sqlite:///{engine.folder}/m.db"), said.append)


@pytest.mark.docker
def test_a_run_removes_what_was_not_used_for_longest_and_says_when_nothing_is_left(engine: TinyEngine) -> None:
    for word, hours in (("old", 9), ("new", 2), ("now", JUST_NOW)):
        engine.image("env", word, hours=hours)
    said: list[str] = []
    budget = budget_of(engine, "17kB", said)
    budget.make_room()
    assert engine.words() == {"env:new", "env:now"}
    assert said == ["1 images removed, 0.0 MB freed"]
    engine.image("env", "newer", hours=1)
    budget.make_room()  # a look is good for a while
    assert "env:new" in engine.words()
    for _ in range(2):
        budget.next_look = 0.0
        budget = replace_allowed(budget, "1kB")
        budget.make_room()
    assert engine.words() == {"env:now"}
    assert said[2:] == ["images take 0.0 MB, there is room for 0.0 MB: 1 kept, as it was used within the last minute"]
    budget.store.close()


def replace_allowed(budget: Budget, allowed: str) -> Budget:
    """The same budget with another size."""
    settings = budget.services.settings.model_copy(update={"image_budget": Settings(image_budget=allowed).image_budget})  # type: ignore[arg-type]
    budget.services = replace(budget.services, settings=settings)
    return budget


@pytest.mark.docker
def test_images_within_the_budget_go_when_the_disk_gets_short(
    engine: TinyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.image("env", "old", hours=9)
    said: list[str] = []
    budget = budget_of(engine, "900TB", said)
    budget.make_room()
    assert (engine.words(), said) == ({"env:old"}, [])
    monkeypatch.setattr(budgets, "RESERVE", 10**18)
    budget.root, budget.next_look = engine.folder, 0.0
    budget.make_room()
    assert engine.words() == set()
    budget.store.close()


def test_room_is_made_after_each_build_and_where_a_disk_is_full(tmp_path: Path) -> None:
    stages, calls = Stages(), []
    run(tmp_path, stages, make_room=lambda: calls.append(1))
    builds = sum(stage is Stage.BUILD for stage, _ in stages.calls)
    assert len(calls) == builds > 1
    _, name = stages.calls[0]

    stages, calls = Stages(faults={(Stage.VERIFY, name): Transient("the disk is full: no space left")}), []
    (tmp_path / "full").mkdir()
    run(tmp_path / "full", stages, make_room=lambda: calls.append(1))
    assert len(calls) == builds + 1


@pytest.mark.parametrize(("word", "size"), [("50GB", 50 * 10**9), ("20GiB", 20 * 2**30), ("1000", 1000)])
def test_a_budget_is_a_size(word: str, size: int) -> None:
    assert settings_of({"image_budget": word}).image_budget == size


def test_what_is_no_size_is_refused() -> None:
    with pytest.raises(UsageError, match="--image-budget"):
        settings_of({"image_budget": "lots"})
