"""Compaction: the content that no record needs any more is removed, and the database gives its free space back."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, text

from taskdb.schema.database import parse_sqlite_path, translate_errors
from taskdb.schema.stored_records import collect_references
from taskdb.store import Store


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """Bytes of the database before and after, and how many rows were removed."""

    bytes_before: int
    bytes_after: int
    test_lists: int
    sketches: int
    states: int


def compact(store: Store) -> Compaction:
    """Remove lists of tests, similarity keys and states that nothing refers to; rewrite the file and its statistics.

    Records stay, those of superseded lineages among them.

    Raises:
        InputError: the database is read-only.
        Transient: another process is writing, or the disk is full.
    """
    before = measure_bytes(store)
    with store.write_transaction() as connection:
        if connection.dialect.name == "postgresql":  # a writer may be about to refer to a list that nobody needs yet
            connection.execute(text("LOCK TABLE test_list IN ACCESS EXCLUSIVE MODE"))
        n_lists = _remove_lists(connection)
        n_sketches = connection.execute(_DROP_SKETCHES).rowcount
        n_states = connection.execute(_DROP_STATES).rowcount
    _rewrite(store)
    return Compaction(
        bytes_before=before,
        bytes_after=measure_bytes(store),
        test_lists=n_lists,
        sketches=n_sketches,
        states=n_states,
    )


def _rewrite(store: Store) -> None:
    """Rewrite the database and its statistics, which no transaction may contain."""
    is_sqlite = store.engine.dialect.name == "sqlite"
    with translate_errors(store.url), closing(store.engine.raw_connection()) as connection:
        raw: Any = connection.driver_connection
        if not is_sqlite:
            raw.autocommit = True
        try:
            for statement in _REWRITE_SQLITE if is_sqlite else _REWRITE_POSTGRESQL:
                raw.execute(statement)
        finally:
            if not is_sqlite:
                raw.autocommit = False


def measure_bytes(store: Store) -> int:
    """Return the size of the database: SQLite's file with its log, or the size that PostgreSQL reports."""
    path = parse_sqlite_path(store.url)
    if path is None:
        with store.read_transaction() as connection:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    files = (path, Path(f"{path}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


_DROP_SKETCHES = text("""DELETE FROM sketch WHERE change IN (
    SELECT h.seq FROM change h WHERE NOT EXISTS (SELECT 1 FROM candidate c WHERE c.id = h.result))""")
_DROP_STATES = text(
    "DELETE FROM change_state WHERE NOT EXISTS (SELECT 1 FROM change_listing h WHERE h.state = change_state.seq)"
)
_REWRITE_SQLITE = (
    "INSERT INTO task_search (task_search) VALUES ('optimize')",
    "VACUUM",
    "ANALYZE",
    "PRAGMA wal_checkpoint(TRUNCATE)",
)
_REWRITE_POSTGRESQL = ("VACUUM (FULL, ANALYZE)",)
_WITH_LISTS = ("pull_request", "candidate", "verification", "task", "rejection")
_BATCH = 500


def _remove_lists(connection: Connection) -> int:
    """Remove the lists that neither a record nor a remaining list needs; return their number."""
    used: set[str] = set()
    for table in _WITH_LISTS:
        query = text(f"SELECT seq, body FROM {table} WHERE seq > :last ORDER BY seq LIMIT :most")  # noqa: S608
        last = -1
        while rows := connection.execute(query, {"last": last, "most": _BATCH}).all():
            for row in rows:
                used |= collect_references(row.body)
            last = rows[-1].seq
    lists = connection.execute(text("SELECT seq, id, base FROM test_list")).all()
    kept = {row.seq for row in lists if row.id in used}
    kept |= {row.base for row in lists if row.seq in kept}
    gone = [row.seq for row in lists if row.seq not in kept]
    drop = text("DELETE FROM test_list WHERE seq IN :keys").bindparams(bindparam("keys", expanding=True))
    for start in range(0, len(gone), _BATCH):
        connection.execute(drop, {"keys": gone[start : start + _BATCH]})
    return len(gone)
