"""SQL of users: it reads the documented views and changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import inspect

from core.errors import UsageError
from taskdb.readonly import run_query
from taskdb.store import Store
from taskdb.views import VIEWS
from tests.taskdb.chains import add_chain, make_url

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "query.md").read_text()


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
        add_chain(store)
        assert list(run_query(store, "SELECT name, status, 1 AS name FROM tasks")) == [
            {"name": "ada__greet-1.bugfix", "status": "certified", "name_2": 1}
        ]
        assert list(run_query(store, "WITH t AS (SELECT * FROM funnel) SELECT certified FROM t")) == [{"certified": 1}]


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_that_writes_is_rejected(tmp_path: Path, statement: str) -> None:
    other = tmp_path / "other.db"
    with Store.open(make_url(tmp_path)) as store:
        add_chain(store)
        with pytest.raises(UsageError):
            list(run_query(store, statement.format(other=other)))
        assert list(run_query(store, "SELECT count(*) AS n FROM task")) == [{"n": 1}]
    assert not other.exists()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_and_column_is_documented(tmp_path: Path, view: str) -> None:
    section = re.search(rf"^### `{view}`\n(.*?)(?=^#|\Z)", DOCUMENTED, re.MULTILINE | re.DOTALL)
    assert section, f"docs/query.md has no section on the view {view}"
    documented = set(re.findall(r"`(\w+)`", section[1]))
    with Store.open(make_url(tmp_path)) as store:
        add_chain(store)
        columns = {column["name"] for column in inspect(store.engine).get_columns(view)}
    assert columns
    assert columns <= documented
