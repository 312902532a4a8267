"""A database of every landed schema opens with its rows, names and stories, on SQLite and on PostgreSQL.

What a single migration does with the values is in `test_migrations`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from taskdb.queries import readonly
from taskdb.queries import tasks as queries
from taskdb.records import Candidate, Certificate, PullRequest, Stage
from taskdb.schema.database import MIGRATIONS, REVISION
from taskdb.schema.mapping import RECORD_TABLES
from taskdb.schema.views import VIEWS
from taskdb.store import Store
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage
from tests.taskdb.old_databases import REVISIONS, make_postgresql, make_sqlite

CONTENT = ("event", "score", "change", *(row.__tablename__ for row, _ in RECORD_TABLES.values()))
"""Tables whose rows a user would miss."""
WITH_SIX_CHANGES = ("0006",)
"""Dumps of six changes; the others are of eight."""


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old(empty_db: str, revision: str, tmp_path: Path) -> str:
    """URL of a database as the revision left it, of each kind."""
    return make_database(empty_db, revision, tmp_path)


def make_database(db: str, revision: str, folder: Path) -> str:
    """Return the URL of a database as a revision left it, of the kind of `db`."""
    if db.startswith("sqlite"):
        return make_sqlite(revision, folder)
    (folder / "dump").mkdir()
    make_postgresql(revision, db, folder / "dump")
    return db


def count_rows(revision: str, folder: Path) -> dict[str, int]:
    """Table -> number of its rows in the dump."""
    folder.mkdir()
    with sqlite3.connect(make_sqlite(revision, folder).removeprefix("sqlite:///")) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        names = [str(name) for name in CONTENT if name in there]
        counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}  # noqa: S608
    connection.close()
    return counts


def test_every_landed_schema_has_a_dump() -> None:
    landed = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    assert landed - {REVISION} <= set(REVISIONS) <= landed


def test_an_old_database_has_its_rows_and_names_and_takes_new_chains(old: str, revision: str, tmp_path: Path) -> None:
    before = count_rows(revision, tmp_path / "counted")
    with Store.open(old) as store:  # which migrates it: most of the time of this test
        check_that_no_row_is_lost_and_every_record_is_readable(store, before)
        check_that_names_are_found_and_stories_are_told(store, revision)
        check_that_what_waited_is_pending_and_new_chains_are_added(store, revision)


def check_that_no_row_is_lost_and_every_record_is_readable(store: Store, before: Mapping[str, int]) -> None:
    for kind, (row, _) in RECORD_TABLES.items():
        assert len(store.load_all(kind)) == before.get(str(row.__tablename__), 0), kind.__name__
    for view, table in (("events", "event"), ("scores", "score"), ("changes", "change")):
        (counted,) = readonly.run_query(store, f"SELECT count(*) AS n FROM {view}")  # noqa: S608
        assert counted["n"] == before[table] > 0
    assert set(inspect(store.engine).get_view_names()) == set(VIEWS)


def check_that_names_are_found_and_stories_are_told(store: Store, revision: str) -> None:
    listed = {row["name"]: row["status"] for row in queries.list_tasks(store, queries.TaskFilters())}
    certified = queries.list_tasks(store, queries.TaskFilters(status="certified"))
    tasks = queries.search_tasks(store, ["greeting"], queries.TaskFilters())
    task = queries.resolve_task(store, "ada__greet-1.bugfix")
    assert queries.resolve_task(store, certified[0]["id"][:12]) == task
    assert task.id == certified[0]["id"]  # the stored id, whatever fields were added since
    assert len(store.get(Certificate, listed_certificate(store, task.name)).gold) == 3
    stories = {number: queries.look_up_change(store, f"ada__greet-{number}")[1]["events"] for number in range(1, 6)}
    steps = {step["stage"]: step for step in queries.compute_funnel(store)}
    assert listed["ada__greet-1.bugfix"] == "certified"
    assert [row["name"] for row in certified] == ["ada__greet-1.bugfix"]
    assert {row["name"] for row in tasks} == set(listed)
    endings = [(stories[number][-1]["stage"], stories[number][-1]["ok"]) for number in (3, 4, 5)]
    assert endings == [("verify", False), ("mine", False), ("build", False)]
    assert {event["stage"] for event in stories[1]} >= {"mine", "build", "verify", "derive", "certify"}
    assert steps["mine"]["rejected"] == {"not-on-default-branch": 1}
    assert steps["mine"]["in"] == (6 if revision in WITH_SIX_CHANGES else 8)
    assert steps["certify"]["out"] == 1


def listed_certificate(store: Store, name: str) -> str:
    query = f"SELECT certificate FROM tasks WHERE name = '{name}'"  # noqa: S608 - a constant name
    (row,) = readonly.run_query(store, query)
    return str(row["certificate"])


def check_that_what_waited_is_pending_and_new_chains_are_added(store: Store, revision: str) -> None:
    waiting, again = (
        {lineage.candidate.name for lineage in store.find_pending(Stage.BUILD, make_scope(retry=retry))}
        for retry in ((), ("install-failed",))
    )
    before = store.load_all(Candidate)
    mined = next(record for record in store.load_all(PullRequest) if record.name == "ada__greet-6")
    assert store.add(mined) == []
    added = add_lineage(store, 40)
    assert queries.resolve_task(store, added.name) == added
    assert len(store.load_all(Candidate)) == len(before) + 1
    assert waiting == (set() if revision in WITH_SIX_CHANGES else {"ada__greet-6"})
    assert again == waiting | {"ada__greet-5"}


def test_what_was_called_strength_is_not_taken_for_what_audits_measure(empty_db: str, tmp_path: Path) -> None:
    with Store.open(make_database(empty_db, "0009", tmp_path)) as store:
        rows = readonly.run_query(store, "SELECT strength, untested_hunks FROM tasks")
        assert rows
        assert all(row == {"strength": None, "untested_hunks": None} for row in rows)
