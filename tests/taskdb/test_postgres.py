"""The same database on PostgreSQL. Needs a server with an empty database, MERGEMILL_TEST_POSTGRES=URL."""

from __future__ import annotations

import os

import pytest

from mergemill.errors import UsageError
from taskdb import queries
from taskdb.chains import Scope
from taskdb.readonly import query
from taskdb.records import Stage
from taskdb.store import Store
from tests import records
from tests.taskdb.chains import whole_chain

SERVER = os.environ.get("MERGEMILL_TEST_POSTGRES", "")


@pytest.mark.slow
@pytest.mark.skipif(not SERVER, reason="MERGEMILL_TEST_POSTGRES names no server")
def test_postgresql_answers_as_sqlite_does() -> None:
    with Store.open(SERVER) as store:
        whole_chain(store, 1)
        whole_chain(store, 2, to=Stage.BUILD)
        pull = records.pull_request(3, title="with a \x00")
        store.mined((pull, records.rejection(pull, Stage.MINE), 0.0))
        assert store.mined((pull, records.rejection(pull, Stage.MINE), 0.0)) == []
        assert [it.candidate.name for it in store.pending(Stage.VERIFY, Scope())] == ["ada__greet-2"]
        assert [step["out"] for step in queries.funnel(store)] == [2, 2, 1, 1, 1]
        task = queries.resolve_task(store, "ada__greet-1.bugfix")
        assert queries.resolve_change(store, task.id[:9]).name == "ada__greet-1"
        assert [row["id"] for row in queries.search_tasks(store, ["greeting"], queries.Filters())] == [task.id]
        assert list(query(store, "SELECT certified FROM funnel")) == [{"certified": 1}]
        for statement in ("DELETE FROM task", "COMMIT; DELETE FROM task", "SELECT frob", "COMMIT"):
            with pytest.raises(UsageError):
                list(query(store, statement))
        assert list(query(store, "SELECT count(*) AS n FROM task")) == [{"n": 1}]
