"""The ranking and the lists it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import Repository
from mergemill.config import Settings
from miner.repos.clone import facts_of_clone
from miner.repos.facts import Facts
from miner.repos.lists import named, update
from miner.repos.rank import SIGNALS, Ranked, rank
from tests.helpers import TinyRepo

TODAY = "2026-01-01T00:00:00+00:00"
GOOD = {
    "merged": 900, "people": 40, "pushed_at": "2025-12-20T00:00:00Z", "has_tests": True, "has_ci": True,
    "license": "MIT", "language": "python", "kilobytes": 9000,
}  # fmt: skip


def facts(repo: str = "ann/tool", **known: object) -> Facts:
    return Facts(repo=repo, source=f"github:{repo}", **known)  # type: ignore[arg-type]


def one(**known: object) -> Ranked:
    return rank([facts(**known)], Settings(), TODAY)[0]


def test_a_good_repository_scores_close_to_one_and_nothing_known_scores_zero() -> None:
    assert one(**GOOD).score > 0.95
    assert one().score == 0
    assert one().signals == {}


@pytest.mark.parametrize("worse", [
    {"merged": 20}, {"people": 1}, {"pushed_at": "2021-01-01T00:00:00Z"}, {"has_tests": False}, {"has_ci": False},
    {"license": "NOASSERTION"}, {"license": "GPL-3.0-only"}, {"language": "julia"}, {"kilobytes": 4_000_000},
])  # fmt: skip
def test_each_signal_moves_the_score(worse: dict[str, object]) -> None:
    assert one(**GOOD | worse).score < one(**GOOD).score


def test_every_signal_has_a_worth_between_zero_and_one() -> None:
    odd = {"merged": 10**7, "people": 10**6, "pushed_at": "2031-01-01T00:00:00Z", "kilobytes": 0, "has_tests": True,
           "has_ci": True, "license": "MIT OR Apache-2.0", "language": "python"}  # fmt: skip
    for known in (odd, GOOD, {"merged": 0, "people": 0, "pushed_at": "1999-01-01", "kilobytes": 10**9}):
        assert all(0 <= worth <= 1 for worth in one(**known).signals.values())
    assert len(one(**odd).signals) == len(SIGNALS)


@pytest.mark.parametrize(("known", "why"), [
    ({"missing": True}, "no such repository"), ({"fork_of": "bob/tool"}, "a fork of bob/tool"),
    ({"merged": 0}, "no merged pull request"),
])  # fmt: skip
def test_musts_put_a_repository_out_with_the_reason(known: dict[str, object], why: str) -> None:
    assert why in one(**known).out


def test_settings_put_out_other_languages_and_licences_but_not_unknown_ones() -> None:
    found = [facts("a/rust", language="rust"), facts("a/gpl", license="GPL-3.0-only"), facts("a/unknown")]
    out = {r.facts.repo: r.out for r in rank(found, Settings(language="python", licenses=("MIT",)), TODAY)}
    assert out == {"a/rust": "rust, not python", "a/gpl": "GPL-3.0-only is not among MIT", "a/unknown": ""}


def test_best_first_and_out_last() -> None:
    found = [facts("a/fork", **GOOD, fork_of="b/b"), facts("a/small", **GOOD | {"merged": 3}), facts("a/good", **GOOD)]
    assert [r.facts.repo for r in rank(found, Settings(), TODAY)] == ["a/good", "a/small", "a/fork"]


def test_what_is_learned_later_counts_and_unknown_does_not_hide_known() -> None:
    dump, api = facts(merged=3, people=2), facts(merged=900, language="python")
    assert dump.but(api) == facts(merged=900, people=2, language="python")
    assert facts(merged=0).but(facts()).merged == 0


def test_a_clone_tells_tests_ci_licence_language_and_pull_requests(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "ann__tool")
    files = {
        "tool.py": "x = 1\n" * 50,
        "tests/test_tool.py": "def test(): pass\n",
        ".github/workflows/ci.yml": "on: push\n",
    }
    mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\n"
    repo.commit("Begin", files | {"LICENSE": mit, "tool.js": "1\n"})
    repo.commit("Add a thing (#4)", {"tool.py": "x = 2\n"})
    found = facts_of_clone(Repository(repo.path), f"git:{repo.path}")
    assert (found.repo, found.merged, found.has_tests, found.has_ci) == ("ann/tool", 1, True, True)
    assert (found.license, found.language) == ("MIT", "python")


def test_a_list_is_only_added_to(tmp_path: Path) -> None:
    path = tmp_path / "repos.txt"
    first = rank([facts("a/one", **GOOD), facts("a/fork", fork_of="b/b")], Settings(), TODAY)
    assert update(path, first) == 2
    text = path.read_text()
    assert "github:a/one" in text
    assert "# github:a/fork" in text
    edited = text.replace("github:a/one", "# github:a/one") + "github:a/mine  # my own"
    path.write_text(edited)
    assert update(path, first) == 0
    assert path.read_text() == edited
    assert update(path, rank([facts("A/Mine"), facts("a/two", **GOOD)], Settings(), TODAY)) == 1
    assert path.read_text().startswith(edited + "\n")
    assert list(named(path.read_text().splitlines())) == [
        "github:a/one",
        "github:a/fork",
        "github:a/mine",
        "github:a/two",
    ]
