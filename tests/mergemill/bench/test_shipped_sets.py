"""The sets in `docs/sets` are as they were frozen, and their sources are named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mergemill.bench.sets import read_set
from miner.sources import expand_sources

SETS = Path(__file__).parents[3] / "docs" / "sets"


def test_review_1_is_whole_held_out_and_names_its_sources() -> None:
    bench_set = read_set(SETS / "review-1.json")
    assert (bench_set.name, bench_set.version, bench_set.held_out) == ("review-1", "1", True)
    assert Counter(subject.kind for subject in bench_set.subjects) == {"review": 72}
    changes = [subject.name.rpartition(".")[0] for subject in bench_set.subjects]
    assert len(set(changes)) == 72, "reviews of a change are a family"
    sources = expand_sources([f"@{SETS / 'review-1.sources'}"])
    names = tuple(f"{source.removeprefix('git:https://github.com/').replace('/', '__')}-" for source in sources)
    assert all(change.startswith(names) for change in changes)
    assert all(any(change.startswith(name) for change in changes) for name in names)
