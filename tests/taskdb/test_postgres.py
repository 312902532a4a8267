"""What is PostgreSQL's own: users' SQL, several programs at once, foreign databases, a server that is gone."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from core.errors import InputError, Transient, UsageError
from taskdb.queries.readonly import run_query
from taskdb.records import PullRequest
from taskdb.schema.views import VIEWS
from taskdb.store import Store
from tests import records
from tests.taskdb.conftest import PostgresServer
from tests.taskdb.lineages import add_lineage
from tests.taskdb.test_readonly import REFUSED

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.postgres


def test_sql_reads_the_views_and_changes_nothing(postgresql: str, tmp_path: Path) -> None:
    with Store.open(postgresql) as store:
        add_lineage(store)
        assert list(run_query(store, "SELECT name, status, 1 AS name FROM tasks")) == [
            {"name": "ada__greet-1.bugfix", "status": "certified", "name_2": 1}
        ]
        for view in VIEWS:
            list(run_query(store, f"SELECT * FROM {view}"))  # noqa: S608 - constant names
        own = ("COMMIT; DELETE FROM task", f"COPY task TO '{tmp_path}/x'", "SELECT nextval('task_seq_seq')")
        for statement in (*REFUSED, *own):
            with pytest.raises(UsageError):
                list(run_query(store, statement.format(other=tmp_path / "other")))
        assert list(run_query(store, "SELECT count(*) AS n FROM task")) == [{"n": 1}]


def test_several_processes_may_open_and_fill_a_new_database_at_once(empty_postgresql: str) -> None:
    code = (
        "import sys; from taskdb.store import Store; from tests import records\n"
        "with Store.open(sys.argv[1]) as store: store.add(records.make_pull_request(int(sys.argv[2])))"
    )
    openers = [subprocess.Popen([sys.executable, "-c", code, empty_postgresql, str(n)], cwd=ROOT) for n in range(2)]
    assert [opener.wait() for opener in openers] == [0] * 2
    with Store.open(empty_postgresql) as store:
        assert list(run_query(store, "SELECT count(*) AS n FROM pull_request")) == [{"n": 2}]


def test_two_runs_that_add_the_same_records_store_them_once(postgresql: str) -> None:
    code = (
        "import sys; from taskdb.store import Store; from tests import records\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    for n in range(200): store.add(records.make_pull_request(n))"
    )
    Store.open(postgresql).close()
    runs = [subprocess.Popen([sys.executable, "-c", code, postgresql], cwd=ROOT) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    with Store.open(postgresql) as store:
        assert list(run_query(store, "SELECT count(*) AS n FROM pull_request")) == [{"n": 200}]


def test_a_database_of_another_program_is_rejected(empty_postgresql: str) -> None:
    with psycopg.connect(empty_postgresql.replace("+psycopg", "")) as connection:
        connection.execute("CREATE TABLE mine (x int)")
    with pytest.raises(InputError, match="not mergemill's"):
        Store.open(empty_postgresql)


def test_a_server_that_does_not_answer_is_a_transient_failure(postgresql: str, tmp_path: Path) -> None:
    elsewhere = postgresql.partition("?")[0] + f"?host={tmp_path}"
    with pytest.raises(Transient, match="no answer from the database"):
        Store.open(elsewhere)
    with Store.open(postgresql) as store:
        store.add(records.make_pull_request())
        with psycopg.connect(postgresql.replace("+psycopg", ""), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND datname = current_database()"
            )
        assert store.add(records.make_pull_request(2))  # a closed connection is opened again


def test_a_store_with_patience_waits_for_a_server_that_is_restarted(server: PostgresServer) -> None:
    url = server.create_database()
    with Store.open(url, patience=60) as store, Store.open(url) as hasty:
        store.add(records.make_pull_request())
        server.run("pg_ctl", "-m", "immediate", "stop")
        with pytest.raises(Transient, match="no answer from the database"):
            hasty.add(records.make_pull_request(2))
        back = threading.Timer(2, server.start_again)
        back.start()
        try:
            assert store.add(records.make_pull_request(2))
            assert len(store.load_all(PullRequest)) == 2
        finally:
            back.join()


def test_a_transaction_that_the_server_ends_is_run_again(postgresql: str) -> None:
    end_others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND datname = current_database()"
    )
    with Store.open(postgresql, patience=60) as store, Store.open(postgresql) as hasty:
        calls = []

        def cut() -> str:
            """Clock of the store, read in the middle of a transaction."""
            calls.append(1)
            if len(calls) == 1:
                with psycopg.connect(postgresql.replace("+psycopg", ""), autocommit=True) as other:
                    other.execute(end_others)
            return "2026-01-01T00:00:00+00:00"

        store.clock = cut
        assert store.add(records.make_pull_request())
        assert len(calls) > 1
        calls.clear()
        hasty.clock = cut
        with pytest.raises(Transient, match="no answer from the database"):
            hasty.add(records.make_pull_request(2))
