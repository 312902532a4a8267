"""Samples: the same for a seed on both databases and in any order of rows; caps and shares hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from taskdb.queries.sampling import allocate, sample_tasks
from taskdb.queries.task_filters import Allocation, parse_filters
from taskdb.store import Store
from tests.taskdb.lineages import make_url
from tests.taskdb.listing import make_listing, make_row, make_varied_rows

ROWS = make_varied_rows(300)
BY_ID = {row["id"]: row for row in ROWS}
REQUESTS: list[dict[str, str]] = [
    {"sample": "40", "seed": "7"},
    {"sample": "40", "seed": "7", "stratify": "language,year"},
    {"sample": "40", "seed": "7", "stratify": "license", "allocate": "equal", "per-family": "1"},
    {"per-repo": "5", "seed": "x"},
    {"sample": "10", "per-repo": "4", "per-family": "1", "where": "changed_lines > 100"},
    {"sample": "1000"},
]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Databases of rows, closed after the test."""
    with ExitStack() as stack:
        numbers = iter(range(100))

        def make_database(rows: list[dict[str, Any]], url: str | None = None) -> Store:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            return stack.enter_context(make_listing(url or make_url(folder), rows))

        yield make_database


def draw(store: Store, **given: str) -> tuple[str, ...]:
    return sample_tasks(store, parse_filters(given))


@pytest.mark.postgres
def test_a_sample_is_the_same_on_both_databases_and_in_any_order(
    make: Callable[..., Store], empty_postgresql: str
) -> None:
    shuffled = random.Random(3).sample(ROWS, len(ROWS))
    stores = [make(ROWS), make(shuffled), make(shuffled, empty_postgresql)]
    for given in REQUESTS:
        drawn = [draw(store, **given) for store in stores]
        assert drawn[0] == drawn[1] == drawn[2], given
        assert drawn[0], given


def test_seeds_give_different_samples_of_the_wanted_size(make: Callable[..., Store]) -> None:
    store = make(ROWS)
    samples = {draw(store, sample="40", seed=str(seed)) for seed in range(20)}
    assert len(samples) == 20
    assert {len(sample) for sample in samples} == {40}
    keys = Counter(key for sample in samples for key in sample)
    assert len(keys) > 200  # every one of the 240 real tasks has a chance


def test_caps_hold_for_every_seed(make: Callable[..., Store]) -> None:
    store = make(ROWS)
    seen = set()
    for seed in range(10):
        seen.add(draw(store, seed=str(seed), **{"per-family": "1"}))
        chosen = [BY_ID[key] for key in draw(store, seed=str(seed), **{"per-repo": "6", "per-family": "1"})]
        assert max(Counter(row["repo"] for row in chosen).values()) == 6
        assert max(Counter(row["family"] for row in chosen).values()) == 1
        assert all(row["environment"] != "simulated" for row in chosen)
    assert len(seen) == 10  # which of a family is kept depends on the seed


def test_unrelated_tasks_leave_a_sample_as_it_is(make: Callable[..., Store]) -> None:
    others = [make_row(n, repo="new/repo", family=f"new-{n}", language="zig") for n in range(1000, 1050)]
    before, after = make(ROWS), make([*ROWS, *others])
    capped = {"per-repo": "6", "per-family": "1", "seed": "5"}
    assert set(draw(before, **capped)) < set(draw(after, **capped))
    # One more task of a large population replaces at most itself.
    plus_one = make([*ROWS, make_row(2000)])
    assert len(set(draw(before, sample="40")) - set(draw(plus_one, sample="40"))) <= 1
    fresh = [row | {"id": f"{at:064x}"} for at, row in enumerate(reversed(ROWS), 5000)]
    names = {row["id"]: row["name"] for row in ROWS + fresh}
    assert {names[key] for key in draw(before, sample="40")} == {names[key] for key in draw(make(fresh), sample="40")}


def test_strata_have_their_shares(make: Callable[..., Store]) -> None:
    rows = [make_row(n, language="python" if n <= 70 else "go" if n <= 95 else "zig") for n in range(1, 101)]
    store, languages = make(rows), {row["id"]: row["language"] for row in rows}

    def count(**given: str) -> Mapping[str, int]:
        return Counter(languages[key] for key in draw(store, stratify="language", **given))

    assert count(sample="20") == {"python": 14, "go": 5, "zig": 1}
    assert count(sample="30", allocate="equal") == {"python": 13, "go": 12, "zig": 5}
    assert count(sample="500") == {"python": 70, "go": 25, "zig": 5}


def test_shares_sum_to_the_sample_for_any_population() -> None:
    generator = random.Random(11)
    for _ in range(300):
        sizes = {(f"s{n}",): generator.randint(1, 50) for n in range(generator.randint(1, 12))}
        total = generator.randint(1, 400)
        for allocation in Allocation:
            given = allocate(sizes, total, allocation)
            assert sum(given.values()) == min(total, sum(sizes.values()))
            assert all(0 <= given[key] <= sizes[key] for key in sizes)
            if allocation is Allocation.EQUAL:  # no stratum with tasks left has two fewer than another
                left = [given[key] for key in sizes if given[key] < sizes[key]]
                assert not left or max(given.values()) - min(left) <= 1
    assert allocate({(None,): 3, ("a",): 3}, 3, Allocation.PROPORTIONAL) == {(None,): 2, ("a",): 1}
