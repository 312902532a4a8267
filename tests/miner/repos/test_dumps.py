"""GH Archive's dumps: old events with the whole payload, new ones with hardly any, and broken files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from mergemill.errors import InputError
from miner.repos.facts import Facts
from miner.repos.gharchive import facts_of_dumps


def event(
    number: int, *, repo: str = "ann/tool", repo_id: int = 7, login: str = "ann", at: str = "2025-03-01T10:00:00Z",
    action: str = "closed", kind: str = "PullRequestEvent", **request: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "type": kind, "actor": {"login": login}, "repo": {"id": repo_id, "name": repo}, "created_at": at,
        "payload": {"action": action, "pull_request": {"number": number, **request}},
    }  # fmt: skip


def dump(path: Path, *events: Any) -> Path:
    lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    content = b"\n".join(lines) + b"\n"
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def told(*paths: Path) -> tuple[list[Facts], list[str]]:
    found = list(facts_of_dumps(paths))
    return [f for f in found if isinstance(f, Facts)], [str(f) for f in found if isinstance(f, InputError)]


WHOLE = {"language": "Python", "size": 1200, "stargazers_count": 5, "archived": False, "license": {"spdx_id": "MIT"}}


def test_a_whole_payload_tells_language_licence_and_size(tmp_path: Path) -> None:
    path = dump(tmp_path / "2025-03-01-10.json.gz", event(1, merged=True, base={"repo": WHOLE}), event(2, merged=False))
    [facts], wrong = told(path)
    assert (facts.repo, facts.source, facts.merged) == ("ann/tool", "github:ann/tool", 1)
    assert (facts.language, facts.license, facts.kilobytes, facts.stars) == ("python", "MIT", 1200, 5)
    assert wrong == []


def test_since_october_2025_the_action_says_that_it_was_merged(tmp_path: Path) -> None:
    path = dump(tmp_path / "d.json", event(1, action="merged"), event(2, action="closed"), event(3, action="opened"))
    [facts], _ = told(path)
    assert facts.merged == 1
    assert facts.language is None


def test_a_pull_request_in_two_dumps_counts_once_and_a_renamed_repository_is_one(tmp_path: Path) -> None:
    old = dump(tmp_path / "a.json", event(1, merged=True, repo="ann/old", at="2025-01-01T00:00:00Z"))
    new = dump(tmp_path / "b.json", event(1, merged=True, repo="ann/new", at="2025-02-01T00:00:00Z"))
    for order in ((old, new), (new, old)):
        [facts], _ = told(*order)
        assert (facts.repo, facts.merged) == ("ann/new", 1)


def test_bots_are_no_people_and_reviews_are_activity_of_people_only(tmp_path: Path) -> None:
    review = event(1, kind="PullRequestReviewEvent", login="bob", action="created")
    bot = event(2, login="dependabot[bot]", merged=True)
    [facts], _ = told(dump(tmp_path / "d.json", event(1, merged=True), review, bot))
    assert (facts.people, facts.merged) == (2, 2)


def test_the_busiest_come_first(tmp_path: Path) -> None:
    path = dump(
        tmp_path / "d.json", event(1, merged=True, repo="a/a", repo_id=1), event(1, merged=True, repo="b/b", repo_id=2),
        event(2, merged=True, repo="b/b", repo_id=2),
    )  # fmt: skip
    assert [facts.repo for facts in told(path)[0]] == ["b/b", "a/a"]


def test_broken_lines_are_named_by_number_and_the_others_count(tmp_path: Path) -> None:
    path = dump(
        tmp_path / "d.json", event(1, merged=True), b'{"type": "PullRequestEvent", "repo"', event(2, merged=True)
    )
    [facts], wrong = told(path)
    assert facts.merged == 2
    assert wrong == [f"{path}:2: not an event; 1 such lines were left out"]


def test_a_cut_dump_is_named_and_what_it_held_counts(tmp_path: Path) -> None:
    whole = dump(tmp_path / "d.json.gz", *(event(number, merged=True) for number in range(5000)))
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(whole.read_bytes()[:-200])
    [facts], wrong = told(cut)
    assert 0 < (facts.merged or 0) <= 5000
    assert "cannot read the dump" in wrong[0]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    facts, wrong = told(tmp_path / "none.json.gz")
    assert facts == []
    assert "none.json.gz" in wrong[0]
