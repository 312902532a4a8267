"""Tags in the database: one row per change and kind, the newest count."""

from __future__ import annotations

from pathlib import Path

from taskdb import readonly
from taskdb.queries import Filters, funnel_by, list_tasks, why
from taskdb.records import Candidate, PullRequest, Stage
from taskdb.store import Store
from taskdb.tags import ChangeKind, Tags
from tests import records
from tests.taskdb.chains import url, whole_chain


def test_the_view_has_a_row_for_each_kind_of_a_rejected_change(tmp_path: Path) -> None:
    pull = records.pull_request(1)
    with Store.open(url(tmp_path)) as store:
        told = records.tags(pull, ChangeKind.BUGFIX, ChangeKind.TEST)
        store.mined((pull, records.rejection(pull, Stage.MINE), 0.0), tags=[told])
        rows = list(readonly.query(store, "SELECT kind, place, rule, quote, route, size FROM tags ORDER BY place"))
        changes = list(readonly.query(store, "SELECT change_kind, size FROM changes"))
        assert store.get(Tags, told.id) == told
    assert [(row["kind"], row["place"]) for row in rows] == [("bugfix", 1), ("test", 2)]
    assert rows[0] | {"kind": "", "place": 0} == rows[1] | {"kind": "", "place": 0}
    assert (rows[0]["rule"], rows[0]["quote"], rows[0]["route"]) == ("title", "fix", "bugfix review")
    assert changes == [{"change_kind": "bugfix", "size": "S"}]


def test_mining_again_with_the_same_tags_adds_nothing_and_with_others_shows_the_newest(tmp_path: Path) -> None:
    pull = records.pull_request(1)
    verdict = (pull, records.rejection(pull, Stage.MINE), 0.0)
    with Store.open(url(tmp_path)) as store:
        for kind in (ChangeKind.BUGFIX, ChangeKind.BUGFIX, ChangeKind.FEATURE, ChangeKind.BUGFIX):
            store.mined(verdict, tags=[records.tags(pull, kind)])
            assert [row["kind"] for row in readonly.query(store, "SELECT kind FROM tags")] == [kind.value]
        assert len(store.all(Tags)) == 2


def test_tasks_are_found_by_any_kind_of_their_change_and_the_funnel_counts_by_kind(tmp_path: Path) -> None:
    with Store.open(url(tmp_path)) as store:
        task = whole_chain(store)
        pull = store.all(PullRequest)[0]
        told = records.tags(pull, ChangeKind.FEATURE, ChangeKind.LOGGING)
        store.mined((pull, store.all(Candidate)[0], 0.0), tags=[told])
        other = records.pull_request(7)
        store.mined((other, records.rejection(other, Stage.MINE), 0.0), tags=[records.tags(other, ChangeKind.CI)])
        found = {kind: list_tasks(store, Filters(change_kind=kind)) for kind in ("logging", "ci")}
        by_kind = funnel_by(store, "change_kind")
        shown = why(store, pull)["tags"]
    assert [row["id"] for row in found["logging"]] == [task.id]
    assert found["ci"] == []
    assert [(row["change_kind"], row["mined"], row["task"]) for row in by_kind] == [("ci", 1, 0), ("feature", 1, 1)]
    assert [one["kind"] for one in shown["kinds"]] == ["feature", "logging"]
