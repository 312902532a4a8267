"""Which images go for a budget, in what order, and which never do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import Transient
from mergemill.execution.images.copies import RegistryClient
from mergemill.execution.images.inventory import describe_images
from mergemill.execution.images.prune import PruneContext, PruneResult, prune_images
from taskdb.queries.images import ImageNeeds
from taskdb.records.images import ImageCopy
from tests.mergemill.engine import JUST_NOW, TinyEngine
from tests.registry import LocalRegistry, make_tiny_image

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(tmp_path)
    yield engine
    engine.close()


def prune(
    engine: TinyEngine, limit: int = 0, *, needs: ImageNeeds | None = None, copies: Any = None, **how: Any
) -> PruneResult:
    """Prune with what is given; without more no registry has anything."""
    check = how.pop("check", lambda _: False)
    dry_run = how.pop("dry_run", False)
    known = PruneContext(needs=needs or ImageNeeds(), copies=copies or {}, ledger=engine.ledger, **how)
    return prune_images(engine, known, limit=limit, dry_run=dry_run, check=check)  # type: ignore[arg-type]


def names(done: PruneResult) -> list[str]:
    return [image.name.removeprefix("mergemill/").rpartition("-")[0] for image, _ in done.removed]


def test_the_least_recently_used_images_are_removed_until_the_budget_is_met(engine: TinyEngine) -> None:
    for word, hours in (("new", 1), ("oldest", 9), ("old", 5), ("older", 7)):
        engine.image("env", word, hours=hours)
    done = prune(engine, 17_000)
    assert names(done) == ["env:oldest", "env:older"]
    assert (done.before, done.after, [freed for _, freed in done.removed]) == (32_000, 16_000, [8000, 8000])
    assert engine.list_words() == {"env:new", "env:old"}
    assert done.kept == {"the budget is met": 2}
    assert set(engine.ledger.read_all()) == {f"mergemill/env:{word}-{engine.mark}" for word in ("new", "old")}


def test_a_dry_run_lists_the_same_images_and_removes_none(engine: TinyEngine) -> None:
    base = engine.image("base", "b", hours=1)
    engine.image("env", "a", under=base, hours=9)
    engine.image("env", "c", hours=5)
    dry = prune(engine, dry_run=True)
    assert engine.list_words() == {"base:b", "env:a", "env:c"}
    assert names(dry) == names(prune(engine)) == ["env:a", "env:c", "base:b"]
    assert engine.list_words() == set()


def test_a_use_of_an_image_is_a_use_of_its_parents(engine: TinyEngine) -> None:
    base = engine.image("base", "b", size=80_000, hours=100)
    deps = engine.image("deps", "d", under=base, size=40_000, hours=90)
    engine.image("env", "fresh", under=deps, hours=2)
    engine.image("env", "stale", hours=50)
    assert names(prune(engine, 130_000)) == ["env:stale"]
    assert names(prune(engine, 120_000)) == ["env:fresh"]
    engine.image("env", "middle", hours=30)  # older than the use of the layers by what is gone by now
    assert names(prune(engine, 100_000)) == ["env:middle", "deps:d"]


def test_the_image_of_a_certified_task_is_kept_with_its_parents(engine: TinyEngine) -> None:
    base = engine.image("base", "b", hours=99)
    deps = engine.image("deps", "d", under=base, hours=98)
    env = engine.image("env", "certified", under=deps, hours=97)
    engine.image("env", "other", under=deps, hours=1)
    done = prune(engine, needs=ImageNeeds(certified={env: ("ada__greet-1.bugfix",)}))
    assert names(done) == ["env:other"]
    assert done.kept == {"certified tasks need it and no registry has a copy": 1, "other images are built on it": 2}
    assert done.after == 24_000


def test_images_of_pending_changes_and_recent_and_unknown_images_are_kept(engine: TinyEngine) -> None:
    waiting = engine.image("env", "waiting", hours=9)
    engine.image("env", "just-used", hours=JUST_NOW)
    foreign = engine.image("env", "foreign", hours=9)
    engine.ledger.remove(foreign)
    known = engine.image("env", "known", hours=9)
    engine.ledger.remove(known)
    needs = ImageNeeds(in_open_changes=frozenset({waiting}), known=frozenset({known}))
    assert names(prune(engine, needs=needs)) == ["env:known"]
    done = prune(engine, needs=needs, include_unknown=True)
    assert names(done) == ["env:foreign"]
    assert done.kept == {"pending changes need it": 1, "it was used within the last minute": 1}


def test_a_base_image_with_children_of_other_programs_is_kept(engine: TinyEngine) -> None:
    base = engine.image("base", "used", hours=9)
    theirs = make_tiny_image(engine.sandbox, f"somebody/else:{engine.mark}", under=base)
    engine.image("base", "unused", hours=9)
    assert names(prune(engine)) == ["base:unused"]
    assert engine.sandbox.images.inspect(base) is not None
    assert engine.sandbox.images.inspect(theirs) is not None


def test_an_image_in_use_is_kept_and_the_next_one_is_removed(engine: TinyEngine) -> None:
    held, other = engine.image("env", "held", hours=9), engine.image("env", "other", hours=8)
    holds, done = threading.Event(), threading.Event()

    def hold() -> None:
        with engine.sandbox.images.hold():
            engine.sandbox.images.inspect(held)
            holds.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    result = prune(engine, 8000)
    done.set()
    thread.join()
    assert names(result) == ["env:other"]
    assert result.kept["it is in use"] == 1
    assert engine.sandbox.images.inspect(other) is None


def test_an_image_with_a_copy_is_removed_while_the_registry_has_the_copy(engine: TinyEngine, tmp_path: Path) -> None:
    registry = LocalRegistry(tmp_path / "registry")
    registry.start()
    copies = {}
    for word in ("kept", "lost", "rebuilt"):
        name = engine.image("env", word, hours=9)
        reference = f"{registry.host}/ada/env@{engine.sandbox.images.push(name, f'{registry.host}/ada/env:{word}')}"
        digest = engine.sandbox.images.inspect(name).digest if word != "rebuilt" else "sha256:other"  # type: ignore[union-attr]
        copies[name] = (ImageCopy(image=name, image_digest=digest, reference=reference, at=""),)
    certified = ImageNeeds(certified=dict.fromkeys(copies, ("ada__greet-1.bugfix",)))
    registry.delete_manifest(copies[f"mergemill/env:lost-{engine.mark}"][0].reference)
    registry.stop()

    check = RegistryClient(engine.sandbox.images).has_copy
    away = prune(engine, needs=certified, copies=copies, check=check)
    assert names(away) == []
    assert away.kept == {"its registry cannot be queried": 2, "its registry has another build of it": 1}
    with pytest.raises(Transient):  # and is not queried twice
        check(next(iter(copies.values()))[0])
    registry.start()
    try:
        again = prune(engine, needs=certified, copies=copies, check=RegistryClient(engine.sandbox.images).has_copy)
    finally:
        registry.stop()
    assert names(again) == ["env:kept"]
    assert again.kept == {"its registry no longer has the copy": 1, "its registry has another build of it": 1}


def test_without_a_budget_only_images_that_no_task_will_need_are_removed(engine: TinyEngine) -> None:
    base = engine.image("base", "b", hours=99)
    rejected = engine.image("env", "rejected-task", under=base, hours=98)
    engine.image("env", "rejected-change", under=base, hours=1)
    done = prune(engine, needs=ImageNeeds(in_tasks=frozenset({rejected})), has_budget=False)
    assert names(done) == ["env:rejected-change"]
    assert done.kept == {"a task needs it": 1, "it is a base image": 1}


def test_the_list_has_bytes_last_use_tasks_and_copies(engine: TinyEngine) -> None:
    base = engine.image("base", "b", size=80_000)
    deps = engine.image("deps", "d", under=base, size=16_000)
    env = engine.image("env", "e", under=deps, size=4000)
    engine.ledger.remove(base)
    needs = ImageNeeds(certified={env: ("b.bugfix", "a.bugfix")})
    copies = {env: (ImageCopy(image=env, image_digest="", reference="localhost:5000/x/env@sha256:1", at=""),)}
    summaries = {
        summary.kind: summary for summary in describe_images(engine.list_images(""), needs, copies, engine.ledger)
    }
    assert {kind: (summary.own_bytes, summary.shared_bytes) for kind, summary in summaries.items()} == {
        "base": (80_000, 0),
        "deps": (16_000, 80_000),
        "env": (4000, 96_000),
    }
    assert all(summary.tasks == ("a.bugfix", "b.bugfix") for summary in summaries.values())
    assert (summaries["env"].registry, summaries["deps"].registry) == ("localhost:5000/x/env@sha256:1", None)
    assert summaries["base"].last_used is None
    assert summaries["env"].last_used is not None
    assert summaries["env"].last_used.endswith("+00:00")
