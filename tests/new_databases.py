"""New SQLite databases copied from the first of a process, and SQL that is compiled once in a process.

A new database is migrated from the first revision to the newest, which takes a quarter of a second, and twice that in a
process that has not imported alembic. The tests open a few thousand. The first one of a process is migrated; the others
begin as its file.

SQLAlchemy keeps the SQL of statements for each engine, and the tests have an engine for each database. Here those of
one kind of database share it, and the dialect by which it is found.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.engine import Dialect
from sqlalchemy.util import LRUCache

from taskdb.schema import database

open_sqlite = database._open_sqlite
STATEMENTS = 5_000
"""Maximum of kept statements of a kind of database."""


@dataclass
class NewDatabase:
    """Content of the file of a new database; empty until the first one of this process is opened."""

    content: bytes = b""

    def make(self) -> None:
        """Keep the content that migrations make."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "new.db")
            url = f"sqlite:///{path}"
            engine = open_sqlite(database._parse_url(url), create=True)
            database.upgrade_schema(engine, url)
            engine.dispose()
            self.content = path.read_bytes()

    def write(self, path: Path) -> None:
        """Write a new file at once, unless another process has; an error is left to SQLite, which is to report it."""
        written = path.with_name(f"{uuid4()}.new")
        with suppress(OSError):
            try:
                with written.open("xb") as file:
                    file.write(self.content)
                written.chmod(written.stat().st_mode & 0o644)  # as SQLite does
                os.link(written, path)
            finally:
                written.unlink()


@dataclass
class SharedStatements:
    """SQL of statements for a kind of database. `dialect`: that of its first engine."""

    dialect: Dialect
    compiled: LRUCache[Any, Any] = field(default_factory=lambda: LRUCache(STATEMENTS))


KNOWN = NewDatabase()
SHARED: dict[str, SharedStatements] = {}


def open_sqlite_copy(url: URL, *, create: bool) -> Engine:
    """Do what `database._open_sqlite` does, but begin a new database with the content of others."""
    path = Path(url.database or "")
    is_new = create and not url.query and not path.exists()
    engine = open_sqlite(url, create=create)
    if is_new:
        if not KNOWN.content:
            KNOWN.make()
        KNOWN.write(path)
    return engine


def create_sharing_engine(url: URL, **options: Any) -> Engine:
    """Return an engine that compiles no statement that another one has compiled."""
    engine = create_engine(url, **options)
    shared = SHARED.setdefault(engine.dialect.name, SharedStatements(engine.dialect))
    if "server_version_info" in vars(shared.dialect):  # it has been connected, so it knows what the database can do
        engine.dialect = engine.pool._dialect = shared.dialect
        engine._compiled_cache = shared.compiled
    return engine


def copy_new_databases() -> None:
    """Let this process, and those forked from it, migrate only its first new database, and compile statements once."""
    database._open_sqlite = open_sqlite_copy
    vars(database)["create_engine"] = create_sharing_engine
