"""The benchmark of environments: its choice follows its rule."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict

from benchmarks.environments.choose import POOLS, chosen, drawn, halves, language_of

RULE = tomllib.loads(POOLS.read_text())


def test_the_repositories_are_those_the_rule_draws():
    assert {pool: [row.repo for row in chosen() if row.pool == pool] for pool in RULE["pools"]} == drawn(
        RULE["pools"], RULE["left_out"]
    )


def test_no_repository_is_drawn_twice_and_every_one_has_a_day_within_the_rule():
    rows = chosen()
    assert len({row.repo for row in rows}) == len(rows) >= 72
    assert all(row.day <= RULE["day"].isoformat() and len(row.commit) == 40 for row in rows)


def test_the_halves_of_a_language_follow_from_names_alone_and_are_even():
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for row in chosen():
        groups[row.group][row.repo] = row.half
    for parts in groups.values():
        assert parts == halves(list(reversed(parts)))
        counted = Counter(parts.values())
        assert 0 <= counted["tune"] - counted["held"] <= 1


def test_a_repository_left_out_is_replaced_by_the_next_of_its_pool():
    pools = {"go": {"names": "a/a b/b c/c d/d", "wanted": 2}}
    first, second = drawn(pools, {})["go"]
    taken = drawn(pools, {first: "gone"})["go"]
    assert taken[0] == second
    assert first not in taken
    assert len(taken) == 2


def test_languages_that_share_a_pool_are_told_apart_by_their_program_files():
    assert language_of(["src/a.ts", "src/b.ts", "test/a.js", "README.md"], "javascript") == "typescript"
    assert language_of(["src/a.c", "src/b.c", "src/b.h", "include/x.hpp"], "c-c++") == "c"
    assert language_of(["include/x.h", "test/t.cpp"], "c-c++") == "c++"
    assert language_of(["a.py"], "go") == "go"
