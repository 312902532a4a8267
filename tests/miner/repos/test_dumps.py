"""Dumps of GH Archive: old events with the whole payload, new ones with little, and broken files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from core.errors import InputError
from miner.repos.facts import RepositoryFacts
from miner.repos.gharchive import read_dump_facts


def build_event(
    number: int,
    *,
    repo: str = "ann/tool",
    repo_id: int = 7,
    login: str = "ann",
    at: str = "2025-03-01T10:00:00Z",
    action: str = "closed",
    kind: str = "PullRequestEvent",
    **request: Any,
) -> dict[str, Any]:
    return {
        "type": kind,
        "actor": {"login": login},
        "repo": {"id": repo_id, "name": repo},
        "created_at": at,
        "payload": {"action": action, "pull_request": {"number": number, **request}},
    }


def write_dump(path: Path, *events: Any) -> Path:
    lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    content = b"\n".join(lines) + b"\n"
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read_facts(*paths: Path) -> tuple[list[RepositoryFacts], list[str]]:
    facts = list(read_dump_facts(paths))
    return [f for f in facts if isinstance(f, RepositoryFacts)], [str(f) for f in facts if isinstance(f, InputError)]


WHOLE = {"language": "Python", "size": 1200, "stargazers_count": 5, "archived": False, "license": {"spdx_id": "MIT"}}


def test_a_full_payload_has_language_licence_and_size(tmp_path: Path) -> None:
    path = write_dump(
        tmp_path / "2025-03-01-10.json.gz",
        build_event(1, merged=True, base={"repo": WHOLE}),
        build_event(2, merged=False),
    )
    [facts], wrong = read_facts(path)
    assert (facts.repo, facts.source, facts.merged) == ("ann/tool", "github:ann/tool", 1)
    assert (facts.language, facts.license, facts.kilobytes, facts.stars) == ("python", "MIT", 1200, 5)
    assert wrong == []


def test_since_october_2025_the_action_is_merged(tmp_path: Path) -> None:
    path = write_dump(
        tmp_path / "d.json",
        build_event(1, action="merged"),
        build_event(2, action="closed"),
        build_event(3, action="opened"),
    )
    [facts], _ = read_facts(path)
    assert facts.merged == 1
    assert facts.language is None


def test_a_pull_request_in_two_dumps_counts_once_and_a_renamed_repository_is_one(tmp_path: Path) -> None:
    old = write_dump(tmp_path / "a.json", build_event(1, merged=True, repo="ann/old", at="2025-01-01T00:00:00Z"))
    new = write_dump(tmp_path / "b.json", build_event(1, merged=True, repo="ann/new", at="2025-02-01T00:00:00Z"))
    for order in ((old, new), (new, old)):
        [facts], _ = read_facts(*order)
        assert (facts.repo, facts.merged) == ("ann/new", 1)


def test_bots_are_no_contributors_and_their_reviews_are_no_activity(tmp_path: Path) -> None:
    review = build_event(1, kind="PullRequestReviewEvent", login="bob", action="created")
    bot = build_event(2, login="dependabot[bot]", merged=True)
    [facts], _ = read_facts(write_dump(tmp_path / "d.json", build_event(1, merged=True), review, bot))
    assert (facts.contributors, facts.merged) == (2, 2)


def test_the_busiest_come_first(tmp_path: Path) -> None:
    path = write_dump(
        tmp_path / "d.json",
        build_event(1, merged=True, repo="a/a", repo_id=1),
        build_event(1, merged=True, repo="b/b", repo_id=2),
        build_event(2, merged=True, repo="b/b", repo_id=2),
    )
    assert [facts.repo for facts in read_facts(path)[0]] == ["b/b", "a/a"]


def test_broken_lines_are_named_by_number_and_the_others_count(tmp_path: Path) -> None:
    path = write_dump(
        tmp_path / "d.json",
        build_event(1, merged=True),
        b'{"type": "PullRequestEvent", "repo"',
        build_event(2, merged=True),
    )
    [facts], wrong = read_facts(path)
    assert facts.merged == 2
    assert wrong == [f"{path}:2: not an event; 1 such lines were left out"]


def test_a_truncated_dump_is_reported_and_its_events_count(tmp_path: Path) -> None:
    whole = write_dump(tmp_path / "d.json.gz", *(build_event(number, merged=True) for number in range(5000)))
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(whole.read_bytes()[:-200])
    [facts], wrong = read_facts(cut)
    assert 0 < (facts.merged or 0) <= 5000
    assert "cannot read the dump" in wrong[0]


def test_a_missing_dump_is_reported(tmp_path: Path) -> None:
    facts, wrong = read_facts(tmp_path / "none.json.gz")
    assert facts == []
    assert "none.json.gz" in wrong[0]
