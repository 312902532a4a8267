"""New databases of the tests are those that migrations make."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.errors import InputError
from taskdb.schema import database
from taskdb.store import Store
from tests import new_databases
from tests.taskdb.lineages import make_url


def dump_new_database(folder: Path) -> Sequence[str]:
    folder.mkdir()
    Store.open(make_url(folder)).engine.dispose()
    with sqlite3.connect(folder / "m.db") as connection:
        dump = list(connection.iterdump())
    connection.close()
    return dump


def test_a_copied_database_is_the_migrated_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dump_new_database(tmp_path / "first")
    assert new_databases.KNOWN.content
    copied = dump_new_database(tmp_path / "copied")
    monkeypatch.setattr(database, "_open_sqlite", new_databases.open_sqlite)
    assert copied == dump_new_database(tmp_path / "migrated")


def test_a_database_of_another_program_is_refused_as_before(tmp_path: Path) -> None:
    assert dump_new_database(tmp_path / "first")
    with sqlite3.connect(tmp_path / "m.db") as connection:
        connection.execute("CREATE TABLE other (a)")
    connection.close()
    with pytest.raises(InputError, match="not mergemill's"):
        Store.open(make_url(tmp_path))
