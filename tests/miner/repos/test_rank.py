"""The ranking and its lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from core.config import Settings
from miner.repos.clone import read_clone_facts
from miner.repos.facts import RepositoryFacts
from miner.repos.lists import find_listed_sources, update_list
from miner.repos.rank import SIGNALS, RankedRepository, rank_repositories
from tests.helpers import TinyRepo

TODAY = "2026-01-01T00:00:00+00:00"
GOOD = {
    "merged": 900,
    "contributors": 40,
    "pushed_at": "2025-12-20T00:00:00Z",
    "has_tests": True,
    "has_ci": True,
    "license": "MIT",
    "language": "python",
    "kilobytes": 9000,
}


def build_facts(repo: str = "ann/tool", **known: object) -> RepositoryFacts:
    return RepositoryFacts(repo=repo, source=f"github:{repo}", **known)  # type: ignore[arg-type]


def rank_one(**known: object) -> RankedRepository:
    return rank_repositories([build_facts(**known)], Settings(), TODAY)[0]


def test_a_good_repository_scores_close_to_one_and_nothing_known_scores_zero() -> None:
    assert rank_one(**GOOD).score > 0.95
    assert rank_one().score == 0
    assert rank_one().signals == {}


@pytest.mark.parametrize(
    "worse",
    [
        {"merged": 20},
        {"contributors": 1},
        {"pushed_at": "2021-01-01T00:00:00Z"},
        {"has_tests": False},
        {"has_ci": False},
        {"license": "NOASSERTION"},
        {"license": "GPL-3.0-only"},
        {"language": "zig"},
        {"kilobytes": 4_000_000},
    ],
)
def test_each_signal_moves_the_score(worse: dict[str, object]) -> None:
    assert rank_one(**GOOD | worse).score < rank_one(**GOOD).score


def test_every_signal_has_a_score_between_zero_and_one() -> None:
    odd = {
        "merged": 10**7,
        "contributors": 10**6,
        "pushed_at": "2031-01-01T00:00:00Z",
        "kilobytes": 0,
        "has_tests": True,
        "has_ci": True,
        "license": "MIT OR Apache-2.0",
        "language": "python",
    }
    for known in (odd, GOOD, {"merged": 0, "contributors": 0, "pushed_at": "1999-01-01", "kilobytes": 10**9}):
        assert all(0 <= worth <= 1 for worth in rank_one(**known).signals.values())
    assert len(rank_one(**odd).signals) == len(SIGNALS)


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"is_missing": True}, "no such repository"),
        ({"fork_of": "bob/tool"}, "a fork of bob/tool"),
        ({"merged": 0}, "no merged pull request"),
    ],
)
def test_a_failed_requirement_rejects_a_repository_with_the_reason(known: dict[str, object], why: str) -> None:
    assert why in rank_one(**known).rejection


def test_settings_reject_other_languages_and_licences_but_not_unknown_ones() -> None:
    ranked = [
        build_facts("a/rust", language="rust"),
        build_facts("a/gpl", license="GPL-3.0-only"),
        build_facts("a/unknown"),
    ]
    out = {
        r.facts.repo: r.rejection
        for r in rank_repositories(ranked, Settings(language="python", licenses=("MIT",)), TODAY)
    }
    assert out == {"a/rust": "rust, not python", "a/gpl": "GPL-3.0-only is not among MIT", "a/unknown": ""}


def test_the_best_comes_first_and_rejected_ones_last() -> None:
    ranked = [
        build_facts("a/fork", **GOOD, fork_of="b/b"),
        build_facts("a/small", **GOOD | {"merged": 3}),
        build_facts("a/good", **GOOD),
    ]
    assert [r.facts.repo for r in rank_repositories(ranked, Settings(), TODAY)] == ["a/good", "a/small", "a/fork"]


def test_later_facts_replace_earlier_ones_unless_unknown() -> None:
    dump, api = build_facts(merged=3, contributors=2), build_facts(merged=900, language="python")
    assert dump.merge_with(api) == build_facts(merged=900, contributors=2, language="python")
    assert build_facts(merged=0).merge_with(build_facts()).merged == 0


def test_facts_of_a_clone_are_tests_ci_licence_language_and_pull_requests(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "ann__tool")
    files = {
        "tool.py": "x = 1\n" * 50,
        "tests/test_tool.py": "def test(): pass\n",
        ".github/workflows/ci.yml": "on: push\n",
    }
    mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\n"
    repo.commit("Begin", files | {"LICENSE": mit, "tool.js": "1\n"})
    repo.commit("Add a thing (#4)", {"tool.py": "x = 2\n"})
    facts = read_clone_facts(GitRepository(repo.path), f"git:{repo.path}")
    assert (facts.repo, facts.merged, facts.has_tests, facts.has_ci) == ("ann/tool", 1, True, True)
    assert (facts.license, facts.language) == ("MIT", "python")


def test_a_list_is_only_added_to(tmp_path: Path) -> None:
    path = tmp_path / "repos.txt"
    first = rank_repositories([build_facts("a/one", **GOOD), build_facts("a/fork", fork_of="b/b")], Settings(), TODAY)
    assert update_list(path, first) == 2
    text = path.read_text()
    assert "github:a/one" in text
    assert "# github:a/fork" in text
    edited = text.replace("github:a/one", "# github:a/one") + "github:a/mine  # my own"
    path.write_text(edited)
    assert update_list(path, first) == 0
    assert path.read_text() == edited
    assert (
        update_list(path, rank_repositories([build_facts("A/Mine"), build_facts("a/two", **GOOD)], Settings(), TODAY))
        == 1
    )
    assert path.read_text().startswith(edited + "\n")
    assert list(find_listed_sources(path.read_text().splitlines())) == [
        "github:a/one",
        "github:a/fork",
        "github:a/mine",
        "github:a/two",
    ]
