"""Compaction removes what nothing refers to, and no record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskdb import compaction
from taskdb.queries import tasks as queries
from taskdb.queries.tasks import TaskFilters
from taskdb.records import PullRequest, Stage, Task, Verification
from taskdb.schema.stored_records import ListBatch, store_lists
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.test_stored_records import TESTS, add_tasks, read_lists


def test_orphans_go_and_records_stay(db: str) -> None:
    with Store.open(db) as store:
        base = ListBatch()  # no record refers to it, but a list is stored as the difference from it
        base.add("ada__greet", json.dumps(["tests/test_gone.py::test_gone", *TESTS], separators=(",", ":")).encode())
        with store.write_transaction() as connection:
            store_lists(connection, base)
        first = records.make_pull_request(8)
        environment = records.make_environment(records.make_candidate(first))
        verification = records.make_verification(environment, candidate=environment.parent, PASS_TO_PASS=TESTS)
        store.add_mined_changes((first, records.make_candidate(first), 0.1))
        store.add(environment, verification)
        tasks = [add_tasks(store, number, TESTS[number:]) for number in range(1, 4)]
        pull = records.make_pull_request(9)
        candidate = records.make_candidate(pull)
        store.add_mined_changes((pull, candidate, 0.1), sketches={candidate.id: [1, 2, 3]})
        store.add_mined_changes((pull, records.make_rejection(pull, Stage.MINE), 0.1))
        orphans = ListBatch()
        for number in range(50):
            orphans.add("x__y", repr([number] * 500).encode())
        with store.write_transaction() as connection:
            store_lists(connection, orphans)
        listed, lists = queries.list_tasks(store, TaskFilters()), len(read_lists(store))
        done = compaction.compact(store)
        assert (done.test_lists, done.sketches) == (50, 3)
        assert done.states > 0
        assert len(read_lists(store)) == lists - 50
        assert queries.list_tasks(store, TaskFilters()) == listed
        assert [store.get(Task, task.id) for task in tasks] == tasks
        assert store.get(Verification, verification.id) == verification
        assert len(store.load_all(PullRequest)) == 5
        assert compaction.compact(store).test_lists == 0


@pytest.mark.parametrize("words", [["alpha"]])
def test_the_file_shrinks(tmp_path: Path, words: list[str]) -> None:
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store, problem_statement=" ".join(words))
        with store.write_transaction() as connection:
            connection.exec_driver_sql("CREATE TABLE waste AS SELECT zeroblob(3000000) AS x")
            connection.exec_driver_sql("DROP TABLE waste")
        done = compaction.compact(store)
        assert done.bytes_after < done.bytes_before - 2_000_000
        assert len(queries.search_tasks(store, words, TaskFilters())) == 1
