"""The sets in `docs/sets` are as they were frozen, and their sources are named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mergemill.bench.sets import read_set
from miner.sources import expand_sources
from taskdb.records.bench import BenchSet

DOCS = Path(__file__).parents[3] / "docs"
SETS = DOCS / "sets"
VERSIONS = {"mixed-1": "2", "review-1": "1"}
NAMES = tuple(VERSIONS)
PER_REPOSITORY = 3
"""Most tasks of a kind of a repository in `mixed-1`."""


def name_sources(name: str) -> tuple[str, ...]:
    """Return the beginnings of the names of all changes of a set's sources."""
    sources = expand_sources([f"@{SETS / f'{name}.sources'}"])
    return tuple(f"{source.removeprefix('git:https://github.com/').replace('/', '__')}-" for source in sources)


def list_changes(bench_set: BenchSet) -> list[str]:
    """Return the names of the changes of all subjects."""
    return [subject.name.rpartition(".")[0] for subject in bench_set.subjects]


def test_all_shipped_sets_are_described() -> None:
    assert sorted(path.stem for path in SETS.glob("*.json")) == list(NAMES)
    assert sorted(path.stem for path in SETS.glob("*.sources")) == list(NAMES)
    overview = (DOCS / "README.md").read_text()
    assert all(f"(guide/bench/{name}.md)" in overview for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_set_is_whole_held_out_and_names_its_sources(name: str) -> None:
    bench_set = read_set(SETS / f"{name}.json")
    assert (bench_set.name, bench_set.version, bench_set.held_out) == (name, VERSIONS[name], True)
    assert bench_set.canary.startswith("mergemill-bench ")
    changes, sources = list_changes(bench_set), name_sources(name)
    assert all(change.startswith(sources) for change in changes)
    assert all(any(change.startswith(source) for change in changes) for source in sources)
    page = (DOCS / "guide" / "bench" / f"{name}.md").read_text()
    assert f"{len(bench_set.subjects)} " in page.splitlines()[2]


def test_review_1_has_one_review_of_a_change() -> None:
    bench_set = read_set(SETS / "review-1.json")
    assert Counter(subject.kind for subject in bench_set.subjects) == {"review": 72}
    assert len(set(list_changes(bench_set))) == 72, "reviews of a change are a family"
    assert not bench_set.rebuilt_images


def test_mixed_1_has_five_kinds_and_few_tasks_of_a_repository() -> None:
    bench_set = read_set(SETS / "mixed-1.json")
    assert bench_set.rebuilt_images, "its images are built on the machine of the user"
    kinds = Counter(subject.kind for subject in bench_set.subjects)
    assert kinds == dict.fromkeys(("bugfix", "test-writing", "review", "injected", "traceback"), 6)
    repositories = name_sources("mixed-1")
    of_repository = Counter(
        (next(filter(subject.name.startswith, repositories)), subject.kind) for subject in bench_set.subjects
    )
    assert max(of_repository.values()) <= PER_REPOSITORY
    assert not set(name_sources("mixed-1")) & set(name_sources("review-1")), "no project is in both"
