"""Tags in the database: one row per change and kind, the newest count."""

from __future__ import annotations

from pathlib import Path

from taskdb.queries import readonly
from taskdb.queries.tasks import TaskFilters, compute_funnel_by, list_tasks, look_up_change
from taskdb.records import Candidate, PullRequest, Stage
from taskdb.records.tags import ChangeKind, Tags
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import add_lineage, make_url


def test_the_view_has_a_row_for_each_kind_of_a_rejected_change(tmp_path: Path) -> None:
    pull = records.make_pull_request(1)
    with Store.open(make_url(tmp_path)) as store:
        tags = records.make_tags(pull, ChangeKind.BUGFIX, ChangeKind.TEST)
        store.add_mined_changes((pull, records.make_rejection(pull, Stage.MINE), 0.0), tags=[tags])
        rows = list(
            readonly.run_query(store, "SELECT change_kind, rank, rule, quote, route, size FROM tags ORDER BY rank")
        )
        changes = list(readonly.run_query(store, "SELECT change_kind, size FROM changes"))
        assert store.get(Tags, tags.id) == tags
    assert [(row["change_kind"], row["rank"]) for row in rows] == [("bugfix", 1), ("test", 2)]
    assert rows[0] | {"change_kind": "", "rank": 0} == rows[1] | {"change_kind": "", "rank": 0}
    assert (rows[0]["rule"], rows[0]["quote"], rows[0]["route"]) == ("title", "fix", "bugfix review")
    assert changes == [{"change_kind": "bugfix", "size": "S"}]


def test_mining_again_with_the_same_tags_adds_nothing_and_with_others_shows_the_newest(tmp_path: Path) -> None:
    pull = records.make_pull_request(1)
    verdict = (pull, records.make_rejection(pull, Stage.MINE), 0.0)
    with Store.open(make_url(tmp_path)) as store:
        for kind in (ChangeKind.BUGFIX, ChangeKind.BUGFIX, ChangeKind.FEATURE, ChangeKind.BUGFIX):
            store.add_mined_changes(verdict, tags=[records.make_tags(pull, kind)])
            assert [row["change_kind"] for row in readonly.run_query(store, "SELECT change_kind FROM tags")] == [
                kind.value
            ]
        assert len(store.load_all(Tags)) == 2


def test_tasks_are_found_by_any_kind_of_their_change_and_the_funnel_counts_by_kind(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        task = add_lineage(store)
        pull = store.load_all(PullRequest)[0]
        tags = records.make_tags(pull, ChangeKind.FEATURE, ChangeKind.LOGGING)
        store.add_mined_changes((pull, store.load_all(Candidate)[0], 0.0), tags=[tags])
        other = records.make_pull_request(7)
        store.add_mined_changes(
            (other, records.make_rejection(other, Stage.MINE), 0.0), tags=[records.make_tags(other, ChangeKind.CI)]
        )
        tasks = {kind: list_tasks(store, TaskFilters(change_kind=kind)) for kind in ("logging", "ci")}
        by_kind = compute_funnel_by(store, "change_kind")
        shown = look_up_change(store, pull.id)[1]["tags"]
    assert [row["id"] for row in tasks["logging"]] == [task.id]
    assert tasks["ci"] == []
    assert [(row["change_kind"], row["mined"], row["task"]) for row in by_kind] == [("ci", 1, 0), ("feature", 1, 1)]
    assert [change_kind["change_kind"] for change_kind in shown["change_kinds"]] == ["feature", "logging"]
