"""A task as it was published is listed until its change gives a verified task, and makes no stage pending."""

from __future__ import annotations

from typing import Any

from taskdb.counts import read_funnel, read_task_counts
from taskdb.listing import rebuild
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import FailureKind, Stage, Task
from taskdb.records.work import AWAITS_CLONE, StageResult, make_clone_wait
from taskdb.store import Store
from tests import records
from tests.scopes import make_scope


def make_imported(candidate: Any, **changes: Any) -> Task:
    environment = records.make_environment(candidate)
    task = records.make_task(records.make_verification(environment), candidate)
    fields: dict[str, Any] = {
        "parent": candidate.id,
        "name": candidate.name,
        "environment": "imported",
        "image": "",
        "image_digest": "",
        "plan": None,
        "eval_script": None,
        "FAIL_TO_PASS": (("t.py::a", FailureKind.UNKNOWN),),
    }
    return Task(**{**dict(task), **fields, **changes})


def list_statuses(store: Store) -> list[tuple[str, str]]:
    return [(row["name"], row["status"]) for row in queries.list_tasks(store, TaskFilters())]


def count_all(store: Store) -> tuple[Any, ...]:
    with store.read_transaction() as connection:
        funnel = {tuple(row) for dimension in ("", "kind") for row in read_funnel(connection, dimension, ())}
        return funnel, read_task_counts(connection, "status")


def test_a_published_task_is_listed_until_a_verified_one_replaces_it(db: str) -> None:
    pull = records.make_pull_request()
    unread = records.make_candidate(pull, license="NOASSERTION")
    read = records.make_candidate(pull)
    scope = make_scope()
    with Store.open(db) as store:
        store.add(pull, unread, make_imported(unread))
        assert list_statuses(store) == []
        store.add_mined_changes((pull, make_clone_wait(pull), 0.0))
        assert list_statuses(store) == [(pull.name, "imported")]
        (change,) = queries.list_changes(store, 9)
        assert (change["status"], change["reason"], change["candidate"]) == ("rejected", AWAITS_CLONE, None)
        assert [list(store.find_pending(stage, scope)) for stage in Stage if stage is not Stage.MINE] == [[]] * 5
        assert count_all(store)[1] == {"imported": 1}

        store.add_mined_changes((pull, read, 0.0))
        assert list_statuses(store) == [(pull.name, "imported")]
        assert [lineage.candidate for lineage in store.find_pending(Stage.BUILD, scope)] == [read]
        # A second import makes a task of the candidate that was read.
        store.add(make_imported(read))
        assert list_statuses(store) == [(pull.name, "imported")]
        assert len(list(store.find_pending(Stage.BUILD, scope))) == 1
        assert list(store.find_pending(Stage.CERTIFY, scope)) == []

        environment = records.make_environment(read)
        verification = records.make_verification(environment)
        verdict, task = records.make_verdict(verification), records.make_task(verification, read)
        made = {Stage.BUILD: environment, Stage.VERIFY: verification, Stage.JUDGE: verdict}
        for stage, record in made.items():
            store.add_stage_results(
                StageResult(stage=stage, result=record, source=pull.source, name=pull.name, seconds=1.0)
            )
        assert list_statuses(store) == [(pull.name, "imported")]
        assert len(list(store.find_pending(Stage.DERIVE, scope))) == 1
        store.add(task)
        assert list_statuses(store) == [(task.name, "derived")]
        before = count_all(store)
        with store.write_transaction() as connection:
            rebuild(connection)
        assert (count_all(store), list_statuses(store)) == (before, [(task.name, "derived")])
