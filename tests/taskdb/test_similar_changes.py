"""Changes of other projects that are similar to a change, from the database."""

from __future__ import annotations

from typing import Any

import pytest

from taskdb.queries.similar_changes import MAX_GOLD_LINES, find_similar_changes, list_topic_words
from taskdb.records import Candidate, PublishedLists, Stage
from taskdb.records.tags import ChangeKind
from taskdb.schema.measures import choose_split
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import add_lineage

OWN = "ada/shop"
OTHERS = [repo for repo in (f"eve/p{n}" for n in range(40)) if choose_split(repo) == choose_split(OWN)]
WIDTHS = "Labels are not cut\n\n`label(text, width)` returns the whole text, however wide it is."
SESSIONS = "Cookies expire too early\n\nA session ends a minute before its cookie."


def make_own() -> Candidate:
    pull = records.make_pull_request(99, repo=OWN, name="ada__shop-99", source="git:shop")
    return records.make_candidate(pull, problem_statement=WIDTHS, gold_files=("shop/label.py",))


def add_change(store: Store, number: int, repo: str, statement: str, **fields: Any) -> Candidate:
    """Add a candidate of a repository, tagged as a bug fix."""
    source, name = f"git:{repo}", f"{repo.replace('/', '__')}-{number}"
    pull = records.make_pull_request(number, repo=repo, name=name, source=fields.pop("source", source))
    kind = fields.pop("kind", ChangeKind.BUGFIX)
    candidate = records.make_candidate(pull, problem_statement=statement, change_kind=kind, **fields)
    store.add_mined_changes((pull, candidate, 0.0), tags=[records.make_tags(pull, kind)])
    return candidate


def find(store: Store, **options: Any) -> list[str]:
    return [other.name for other in find_similar_changes(store, make_own(), ["python"], **options)]


def test_topic_words_are_of_files_title_and_code() -> None:
    assert list_topic_words(make_own())[:4] == ["shop", "label", "text", "width"]


def test_the_most_similar_change_of_another_project_comes_first(db: str) -> None:
    with Store.open(db) as store:
        add_change(store, 1, OTHERS[0], SESSIONS)
        add_change(store, 2, OTHERS[1], "Receipts are not cut\n\n`cut(text, width)` returns the whole text.")
        add_change(store, 3, OTHERS[0], "Totals are too small\n\nThe first price is not counted.")
        assert find(store)[0] == f"{OTHERS[1].replace('/', '__')}-2"
        assert len(find(store)) == 3
        assert len(find(store, most=2)) == 2
        wanted = f"{OTHERS[0].replace('/', '__')}-1"
        assert find(store, is_allowed=lambda other: other.name == wanted, most=1) == [wanted]


@pytest.mark.parametrize(
    ("repo", "fields"),
    [
        (OWN, {}),
        ("eve/shop", {}),
        (next(repo for repo in (f"eve/q{n}" for n in range(99)) if choose_split(repo) != choose_split(OWN)), {}),
        (OTHERS[0], {"language": "go"}),
        (OTHERS[0], {"kind": ChangeKind.FEATURE}),
        (OTHERS[0], {"gold_lines": MAX_GOLD_LINES + 1}),
        (OTHERS[0], {"published": PublishedLists(FAIL_TO_PASS=(), PASS_TO_PASS=())}),
        (OTHERS[0], {"source": "instances:/data/set.jsonl"}),
    ],
    ids=["own", "fork", "other-split", "language", "feature", "large", "published", "instances"],
)
def test_some_changes_are_never_mirrored(db: str, repo: str, fields: dict[str, Any]) -> None:
    with Store.open(db) as store:
        add_change(store, 1, repo, WIDTHS, **fields)
        assert find(store) == []


def test_a_bug_fix_is_found_by_the_words_of_its_task_whatever_its_tag(db: str) -> None:
    with Store.open(db) as store:
        fields: dict[str, Any] = {"repo": OTHERS[0], "problem_statement": WIDTHS, "change_kind": ChangeKind.OTHER}
        task = {"repo": OTHERS[0], "problem_statement": WIDTHS}
        add_lineage(store, 1, task_fields=task, **fields)
        add_lineage(store, 2, task_fields={**task, "problem_statement": SESSIONS}, **fields)
        assert find(store) == ["ada__greet-1"]


def test_a_change_that_the_judge_has_set_aside_is_not_mirrored(db: str) -> None:
    with Store.open(db) as store:
        fields: dict[str, Any] = {"repo": OTHERS[0], "problem_statement": WIDTHS}
        verdict = {"set_aside": "message-not-stated"}
        add_lineage(store, 1, to=Stage.JUDGE, verdict_fields=verdict, task_fields={"repo": OTHERS[0]}, **fields)
        assert find(store) == []
