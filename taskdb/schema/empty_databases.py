"""Removal of new databases in which nothing was stored: a command that fails leaves no file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def remove_empty_database(path: Path) -> bool:
    """Remove an SQLite database of mergemill's that holds no row; return whether it was removed.

    It stays where another process has it open. A process that opens it during the removal gets SQLite's error for a
    file that was moved, since the log of writes (WAL), which goes without that check, is switched off first.
    """
    place = path.resolve()
    try:
        with closing(
            sqlite3.connect(f"{place.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
        ) as database:
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
            # SQLite refuses to switch while another connection is open.
            (mode,) = database.execute("PRAGMA journal_mode=DELETE").fetchone()
            if mode != "delete":
                return False
            database.execute("BEGIN EXCLUSIVE")
            if has_rows(database):
                database.execute("ROLLBACK")
                database.execute("PRAGMA locking_mode=NORMAL")
                database.execute("PRAGMA journal_mode=WAL")
                return False
            place.unlink()
    except (sqlite3.Error, OSError):
        return False
    return True


def has_rows(database: sqlite3.Connection) -> bool:
    """Return whether any table has a row, but for those that a new database fills itself."""
    # Most commands open databases that exist, and load no tables.
    from taskdb.schema.tables import METADATA, MetaRow  # noqa: PLC0415

    names = METADATA.tables.keys() - {str(MetaRow.__tablename__)}
    queries = (f'SELECT 1 FROM "{name}" LIMIT 1' for name in sorted(names))  # noqa: S608 - names of the schema
    return any(database.execute(query).fetchone() for query in queries)
