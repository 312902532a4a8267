"""SQL of users: it reads the documented views and changes nothing."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import inspect

from core.errors import InputError, UsageError
from taskdb.queries import tasks as queries
from taskdb.queries.readonly import run_query
from taskdb.schema.views import VIEWS
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url

DOCUMENTED = (Path(__file__).parents[2] / "docs/guide/query/query.md").read_text()


REFUSED = [
    "DELETE FROM task",
    "UPDATE task SET name = 'x'",
    "INSERT INTO meta VALUES ('a', 'b')",
    "DROP VIEW tasks",
    "CREATE TABLE x (y)",
    "ATTACH DATABASE '{other}' AS other",
    "PRAGMA query_only=OFF",
    "PRAGMA writable_schema=ON",
    "VACUUM INTO '{other}'",
    "SELECT load_extension('x')",
    "SELECT 1; DELETE FROM task",
    "BEGIN",
    "COMMIT",
    "SELECT nothing FROM tasks",
    "frob",
    "",
]


def test_the_views_are_read(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store)
        assert list(run_query(store, "SELECT name, status, 1 AS name FROM tasks")) == [
            {"name": "ada__greet-1.bugfix", "status": "certified", "name_2": 1}
        ]
        assert list(run_query(store, "WITH t AS (SELECT * FROM funnel) SELECT certified FROM t")) == [{"certified": 1}]


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_that_writes_is_rejected(tmp_path: Path, statement: str) -> None:
    other = tmp_path / "other.db"
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store)
        with pytest.raises(UsageError):
            list(run_query(store, statement.format(other=other)))
        assert list(run_query(store, "SELECT count(*) AS n FROM task")) == [{"n": 1}]
    assert not other.exists()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_and_column_is_documented(tmp_path: Path, view: str) -> None:
    section = re.search(rf"^### `{view}`\n(.*?)(?=^#|\Z)", DOCUMENTED, re.MULTILINE | re.DOTALL)
    assert section, f"docs/guide/query/query.md has no section on the view {view}"
    documented = set(re.findall(r"`(\w+)`", section[1]))
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store)
        columns = {column["name"] for column in inspect(store.engine).get_columns(view)}
    assert columns
    assert columns <= documented


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a database whose file and folder cannot be written; root may write everything, so access is denied."""
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store)
    (tmp_path / "m.db").chmod(0o444)
    tmp_path.chmod(0o555)
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).startswith(str(tmp_path)) or mode != os.W_OK)
    return make_url(tmp_path)


def test_a_read_only_file_in_a_read_only_folder_is_read(read_only: str, tmp_path: Path) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    with Store.open(read_only) as store:
        assert len(queries.list_tasks(store, queries.TaskFilters())) == 1
        assert list(run_query(store, "SELECT count(*) AS n FROM tasks")) == [{"n": 1}]
        with pytest.raises(InputError, match="is read-only") as caught:
            add_lineage(store, 2)
    assert caught.value.exit_code == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == before  # no log, no shared memory


def test_a_read_only_file_of_an_earlier_schema_is_named(read_only: str, tmp_path: Path) -> None:
    (tmp_path / "m.db").chmod(0o644)
    with sqlite3.connect(tmp_path / "m.db") as raw:
        raw.execute("UPDATE alembic_version SET version_num = '0007'")
    raw.close()
    with pytest.raises(InputError, match="earlier schema, and read-only"):
        Store.open(read_only)


def test_json_in_a_column_can_be_read(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store)
        query = "SELECT t.name, j.value FROM tasks t, json_each('[7]') j"
        assert list(run_query(store, query)) == [{"name": "ada__greet-1.bugfix", "value": 7}]
