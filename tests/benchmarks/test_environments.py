"""The benchmark of environments: draw, rows and tables."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from benchmarks.environments.__main__ import load_part
from benchmarks.environments.choose import (
    FROZEN_POOLS,
    POOLS,
    BenchmarkRepository,
    assign_halves,
    choose_frozen,
    detect_language,
    draw_frozen,
    draw_names,
    load_chosen,
    split_halves,
    write_chosen,
)
from benchmarks.environments.measure import (
    STEP_BY_REASON,
    STEPS,
    EnvironmentResult,
    append_result,
    measure,
    read_results,
)
from benchmarks.environments.tables import render_markdown
from builders.acceptance import Reason
from taskdb.records.difficulty import compute_wilson_interval
from tests.containers import make_services
from tests.helpers import TinyRepo

RULE = tomllib.loads(POOLS.read_text())


def test_the_repositories_are_those_the_rule_draws():
    assert {pool: [row.repo for row in load_chosen() if row.pool == pool] for pool in RULE["pools"]} == draw_names(
        RULE["pools"], RULE["left_out"]
    )


def test_no_repository_is_drawn_twice_and_every_one_has_a_day_within_the_rule():
    rows = load_chosen()
    assert len({row.repo for row in rows}) == len(rows) >= 72
    assert all(row.day <= RULE["day"].isoformat() and len(row.commit) == 40 for row in rows)


def test_the_halves_of_a_language_follow_from_names_alone_and_are_even():
    half = assign_halves(RULE["pools"], RULE["left_out"])
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for row in load_chosen():
        assert row.half == half[row.repo]
        groups[row.group][row.half] += 1
    assert all(0 <= counted["tune"] - counted["held"] <= 1 for counted in groups.values())
    names = ["a/a", "b/b", "c/c"]
    assert split_halves(names) == split_halves(names[::-1])


def test_a_replacement_takes_the_half_of_what_it_replaces_and_moves_no_other():
    pools = {"go": {"names": "a/a b/b c/c d/d e/e", "wanted": 4, "language": "go"}}
    before = assign_halves(pools, {})
    gone = draw_names(pools, {})["go"][1]
    after = assign_halves(pools, {gone: "lost"})
    (new,) = set(draw_names(pools, {gone: "lost"})["go"]) - set(before)
    assert after[new] == before[gone]
    assert all(after[name] == half for name, half in before.items())


def test_a_repository_left_out_is_replaced_by_the_next_of_its_pool():
    pools = {"go": {"names": "a/a b/b c/c d/d", "wanted": 2}}
    first, second = draw_names(pools, {})["go"]
    kept = draw_names(pools, {first: "gone"})["go"]
    assert kept[0] == second
    assert first not in kept
    assert len(kept) == 2


def test_the_frozen_part_is_drawn_by_the_commit_that_is_measured_from_what_was_never_drawn():
    rule = tomllib.loads(FROZEN_POOLS.read_text())
    drawn = [draw_frozen(rule, commit * 40) for commit in "ab"]
    assert sum(map(len, drawn[0].values())) >= 60
    assert {pool: len(names) for pool, names in drawn[0].items()} == {
        pool: definition["wanted"] for pool, definition in rule["pools"].items()
    }
    assert drawn[0] != drawn[1]
    pools = {"go": {"names": f"{load_chosen()[0].repo} a/a b/b", "wanted": 3}}
    assert sorted(draw_frozen({"pools": pools, "left_out": {"b/b": "cannot be had"}}, "a" * 40)["go"]) == ["a/a"]
    first = drawn[0]["go"][0]
    assert first not in draw_frozen(rule | {"left_out": {first: "cannot be had"}}, "a" * 40)["go"]


def test_what_was_drawn_for_another_commit_is_left_out(tmp_path):
    pools = {"go": {"names": "a/a b/b c/c", "wanted": 3}}
    for repo, code in (("a/a", "c"), ("b/b", "d")):
        row = BenchmarkRepository(
            repo=repo, pool="go", group="go", language="go", half="frozen", commit="1" * 40, day="2030-01-01"
        )
        write_chosen([row], tmp_path / f"{code * 7}.toml", FROZEN_POOLS, code=code * 40)
    rule = {"pools": pools, "left_out": {}}
    assert sorted(draw_frozen(rule, "c" * 40, tmp_path)["go"]) == ["a/a", "c/c"]
    assert sorted(draw_frozen(rule, "d" * 40, tmp_path)["go"]) == ["b/b", "c/c"]
    assert draw_frozen(rule, "e" * 40, tmp_path)["go"] == ["c/c"]


def test_the_frozen_part_is_measured_by_the_commit_that_it_was_drawn_for(tmp_path):
    repo = TinyRepo(tmp_path / "work")
    repo.commit("Begin", {"a.go": "package a\n"})
    (tmp_path / "a__a.git").symlink_to(repo.path)
    pools = {"go": {"names": "a/a", "wanted": 1, "language": "go"}}
    rule = {"pools": pools, "left_out": {}, "day": "2030-01-01", "max_files": 9, "max_megabytes": 9}
    chosen = choose_frozen(rule, "c" * 40, tmp_path)
    assert [(row.repo, row.half) for row in chosen] == [("a/a", "frozen")]
    path = tmp_path / "frozen.toml"
    with pytest.raises(SystemExit, match="does not exist"):
        load_part("frozen", path, "ccccccc")
    write_chosen(chosen, path, FROZEN_POOLS, code="c" * 40)
    assert load_part("frozen", path, "ccccccc") == chosen
    for other in ("ddddddd", "ccccccc+"):
        with pytest.raises(SystemExit, match="drawn for commit"):
            load_part("frozen", path, other)


def test_languages_of_one_pool_are_distinguished_by_their_program_files():
    assert detect_language(["src/a.ts", "src/b.ts", "test/a.js", "README.md"], "javascript") == "typescript"
    assert detect_language(["src/a.c", "src/b.c", "src/b.h", "include/x.hpp"], "c-c++") == "c"
    assert detect_language(["include/x.h", "test/t.cpp"], "c-c++") == "c++"
    assert detect_language(["a.py"], "go") == "go"


def make_row(
    repo: str, half: str, reason: str = "", *, language: str = "go", seconds: float = 10.0
) -> EnvironmentResult:
    return EnvironmentResult(
        repo=repo,
        group=language,
        language=language,
        half=half,
        commit="c" * 40,
        day="2025-06-30",
        step=STEP_BY_REASON[reason] if reason else "accepted",
        reason=reason,
        detail="",
        attempt=0 if reason else 1,
        edits=("python 3.9",),
        version="",
        seconds=seconds,
        test_seconds=1,
        own_mb=0.5,
        shared_mb=80,
        share=1,
        passed=9,
        ran=10,
        revision="r",
    )


def test_every_rejection_reason_of_a_build_has_a_last_step():
    assert {str(reason) for reason in Reason} <= STEP_BY_REASON.keys()
    assert set(STEP_BY_REASON.values()) <= {"", *STEPS[:-1]}


def test_a_row_written_again_replaces_the_earlier_one(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert read_results(path) == {}
    for row in (make_row("a/a", "tune", "timeout"), make_row("b/b", "held"), make_row("a/a", "tune")):
        append_result(row, path)
    assert read_results(path) == {"a/a": make_row("a/a", "tune"), "b/b": make_row("b/b", "held")}
    assert len(path.read_text().splitlines()) == 3


def test_shares_are_counted_by_step_language_and_half():
    rows = [
        make_row("a/a", "tune"),
        replace(make_row("b/b", "tune", "no-plan"), detail="no | file\n"),
        make_row("c/c", "held", "few-collected"),
        make_row("d/d", "held", language="rust", seconds=30),
    ]
    lines = render_markdown(rows).splitlines()
    assert "| go | both | 3 | 2 | 2 | 1 | 1 | 33% | 6%-79% | 10 | 80 | 0.50 |" in lines
    assert "| all | both | 4 | 3 | 3 | 2 | 2 | 50% | 15%-85% | 20 | 80 | 0.50 |" in lines
    assert "| `no-plan` | 1 |  | b/b |" in lines
    assert "| b/b | `no-plan` | no \\| file |" in lines
    assert "| a/a | go | tune | 2025-06-30 | accepted | 1 | 10 | 80 | 0.50 | 9 of 10 |" in lines


def test_the_interval_is_wilsons():
    low, high = compute_wilson_interval(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert compute_wilson_interval(0, 5)[0] == 0
    assert compute_wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.docker
def test_a_repository_is_measured_by_the_products_own_stage(tmp_path):
    repo = TinyRepo(tmp_path / "work")
    test = "from one import ONE\n\ndef test(): assert ONE == 1\n"
    commit = repo.commit("Begin", {"one.py": "ONE = 1\n", "test_one.py": test, "setup.cfg": "[tool:pytest]\n"})
    (tmp_path / "a__a.git").symlink_to(repo.path)
    benchmark_repository = BenchmarkRepository(
        repo="a/a", pool="python", group="python", language="python", half="tune", commit=commit, day="2024-03-01"
    )
    services = make_services(tmp_path)
    got = measure(benchmark_repository, tmp_path, services, tmp_path)
    assert (got.step, got.reason, got.attempt, got.passed, got.ran) == ("accepted", "", 1, 1, 1)
    assert got.shared_mb > 0
    assert "passed" in (tmp_path / "a__a.log").read_text()
    lost = measure(replace(benchmark_repository, language="cobol"), tmp_path, services, tmp_path)
    assert (lost.step, lost.reason) == ("", "no-language")
