"""A run keeps to its disk budget: after builds, and when the disk gets short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import Transient, UsageError
from core.settings.group import replace_values
from mergemill.cli.options import build_settings
from mergemill.execution.images import budget as budgets
from mergemill.execution.images.budget import ImageBudget
from taskdb.records import Stage
from taskdb.store import Store
from tests.containers import make_services
from tests.mergemill.engine import JUST_NOW, TinyEngine
from tests.mergemill.stages import FakeStages, run


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(tmp_path)
    yield engine
    engine.close()


def make_budget(engine: TinyEngine, allowed: str, messages: list[str]) -> ImageBudget:
    services = replace(make_services(engine.folder, image_budget=allowed), sandbox=engine)  # type: ignore[type-var]
    return ImageBudget(services, Store.open(f"sqlite:///{engine.folder}/m.db"), messages.append)


@pytest.mark.docker
def test_a_run_removes_the_least_recently_used_images_and_reports_when_none_is_left(engine: TinyEngine) -> None:
    for word, hours in (("old", 9), ("new", 2), ("now", JUST_NOW)):
        engine.image("env", word, hours=hours)
    messages: list[str] = []
    budget = make_budget(engine, "17kB", messages)
    budget.free_space()
    assert engine.list_words() == {"env:new", "env:now"}
    assert messages == ["1 image removed, 0.0 MB freed"]
    engine.image("env", "newer", hours=1)
    budget.free_space()  # a look is good for a while
    assert "env:new" in engine.list_words()
    for _ in range(2):
        budget.next_check = 0.0
        budget = with_allowed(budget, "1kB")
        budget.free_space()
    assert engine.list_words() == {"env:now"}
    assert messages[2:] == ["images take 0.0 MB, 0.0 MB are allowed: 1 kept because it was used within the last minute"]
    budget.store.close()


def with_allowed(budget: ImageBudget, allowed: str) -> ImageBudget:
    """The same budget with another size."""
    settings = replace_values(
        budget.services.settings, {"image_budget": Settings(image_budget=allowed).operation.image_budget}
    )  # type: ignore[arg-type]
    budget.services = replace(budget.services, settings=settings)
    return budget


@pytest.mark.docker
def test_images_within_the_budget_are_removed_when_the_disk_is_nearly_full(
    engine: TinyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.image("env", "old", hours=9)
    messages: list[str] = []
    budget = make_budget(engine, "900TB", messages)
    budget.free_space()
    assert (engine.list_words(), messages) == ({"env:old"}, [])
    monkeypatch.setattr(budgets, "RESERVED_BYTES", 10**18)
    budget.docker_root, budget.next_check = engine.folder, 0.0
    budget.free_space()
    assert engine.list_words() == set()
    budget.store.close()


def test_space_is_freed_after_each_build_and_on_a_full_disk(tmp_path: Path) -> None:
    stages, calls = FakeStages(), []
    run(tmp_path, stages, make_room=lambda: calls.append(1))
    builds = sum(stage is Stage.BUILD for stage, _ in stages.calls)
    assert len(calls) == builds > 1
    _, name = stages.calls[0]

    stages, calls = FakeStages(faults={(Stage.VERIFY, name): Transient("the disk is full: no space left")}), []
    (tmp_path / "full").mkdir()
    run(tmp_path / "full", stages, make_room=lambda: calls.append(1))
    assert len(calls) == builds + 1


@pytest.mark.parametrize(("word", "size"), [("50GB", 50 * 10**9), ("20GiB", 20 * 2**30), ("1000", 1000)])
def test_a_budget_is_a_size(word: str, size: int) -> None:
    assert build_settings({"image_budget": word}).operation.image_budget == size


def test_an_invalid_size_is_rejected() -> None:
    with pytest.raises(UsageError, match="--image-budget"):
        build_settings({"image_budget": "lots"})
