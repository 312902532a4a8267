"""Opening of a database: engine options, schema upgrades, translation of its errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError, OperationalError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from core.errors import InputError, MachineError, Transient, UsageError
from taskdb.schema.indices import INDICES
from taskdb.schema.task_columns import DECLARED
from taskdb.schema.views import FINGERPRINT, VIEWS


class NoAnswerError(Transient):
    """A database server does not answer, or ended a connection."""


REVISION = "0015"
"""The newest migration; `tests/taskdb` compares it with the folder."""
MIGRATIONS = Path(__file__).parents[1] / "migrations"
_VIEWS_FINGERPRINT = "SELECT value FROM meta WHERE key = 'views'"
LOCK_SECONDS = 30
"""Maximum wait for another process that is writing."""


def parse_sqlite_path(url: str) -> Path | None:
    """Return the file of an SQLite URL, or None for another kind of database."""
    parsed = _parse_url(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def open_engine(url: str, *, create: bool) -> Engine:
    """Return an engine for `url` with the newest schema.

    Raises:
        UsageError: the URL is invalid, or of an unsupported kind.
        InputError: there is no database (and `create` is false), it is not a database of mergemill's, or it is of an
            earlier schema and cannot be written.
        MachineError: the driver for this kind of database is not installed.
        Transient: it is locked, full or not writable.
    """
    parsed = _parse_url(url)
    with translate_errors(url):
        if parsed.get_backend_name() == "sqlite":
            engine = _open_sqlite(parsed, create=create)
        else:
            engine = create_engine(parsed, pool_pre_ping=True)
        try:
            upgrade_schema(engine, url)
        except BaseException:
            engine.dispose()
            raise
        return engine


def upgrade_schema(engine: Engine, url: str) -> None:
    """Upgrade tables and views; nothing is written when they are current."""
    with engine.connect() as connection:
        # Checked without a writer's lock, for which every command would otherwise have to wait.
        if _read_state(connection) == (REVISION, FINGERPRINT):
            return
    if engine.url.query.get("mode") == "ro":
        advice = "make the file and its folder writable, or copy it, then run this again"
        raise InputError(f"{url} is of an earlier schema, and read-only", advice=advice)
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            # two processes may open a new database at once
            connection.execute(text("SELECT pg_advisory_xact_lock(7245891)"))
        # Read again under the lock, as another process may have upgraded the schema in the meantime.
        revision, views = _read_state(connection)
        if revision != REVISION or _lacks_columns(connection, url):
            _migrate(connection, revision, url)
        # A migration drops the views.
        if (revision, views) != (REVISION, FINGERPRINT):
            _create_views(connection)


def _migrate(connection: Connection, revision: str | None, url: str) -> None:
    # Loading Alembic takes a quarter of a second, which an up-to-date database need not pay.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    # Alembic interpolates its options, so a `%` of the path is doubled.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is not None and revision not in known:
        raise InputError(f"{url} was written by a newer mergemill (schema {revision})", advice="update mergemill")
    if revision is None and inspect(connection).get_table_names():
        raise InputError(f"{url} is a database, but not mergemill's", advice="name another one with --db")
    # A database does not change columns that a view reads.
    _drop_views(connection)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _lacks_columns(connection: Connection, url: str) -> bool:
    """Return whether the listing of tasks lacks declared columns, which `migrations/env.py` adds."""
    listed = {column["name"] for column in inspect(connection).get_columns("task_listing")}
    if unknown := sorted(listed - {"task", "change", *DECLARED}):
        raise InputError(f"{url} was written by a newer mergemill (column {unknown[0]})", advice="update mergemill")
    return not listed.issuperset(DECLARED)


def _read_state(connection: Connection) -> tuple[str | None, str | None]:
    """Return the revision of the tables and the fingerprint of the views, each None where there is none."""
    tables = inspect(connection).get_table_names()
    known = (("alembic_version", "SELECT version_num FROM alembic_version"), ("meta", _VIEWS_FINGERPRINT))
    revision, views = (connection.execute(text(q)).scalar() if name in tables else None for name, q in known)
    return revision, views


def database_exists(url: str) -> bool:
    """Return whether there is a database to open: False for a missing SQLite file."""
    parsed = _parse_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(parsed.database or "").exists()


def _drop_views(connection: Connection) -> None:
    there = set(inspect(connection).get_view_names())
    for name in [name for name in reversed(VIEWS) if name in there]:
        connection.execute(text(f"DROP VIEW {name}"))


def _create_views(connection: Connection) -> None:
    _drop_views(connection)
    for name, query in VIEWS.items():
        connection.execute(text(f"CREATE VIEW {name} AS {query}"))
    _create_indices(connection)
    connection.execute(text("DELETE FROM meta WHERE key = 'views'"))
    connection.execute(text("INSERT INTO meta (key, value) VALUES ('views', :views)"), {"views": FINGERPRINT})


def _create_indices(connection: Connection) -> None:
    """Create the indices of the listings that are missing or have changed, and drop those no longer wanted."""
    wanted = INDICES[connection.dialect.name]
    known = {row.key.removeprefix("index:"): row.value for row in connection.execute(text(_KNOWN_INDICES))}
    for name, columns in known.items():
        if columns != wanted.get(name):
            connection.execute(text(f"DROP INDEX IF EXISTS {name}"))
            connection.execute(text("DELETE FROM meta WHERE key = :key"), {"key": f"index:{name}"})
    for name, columns in wanted.items():
        if known.get(name) != columns:
            connection.execute(text(f"CREATE INDEX {name} ON {columns}"))
            key = {"key": f"index:{name}", "value": columns}
            connection.execute(text("INSERT INTO meta (key, value) VALUES (:key, :value)"), key)


_KNOWN_INDICES = "SELECT key, value FROM meta WHERE key LIKE 'index:%'"

# ----------------------------------------------------------------------------------------------------- engines


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise UsageError(f"{url!r} is no database URL", advice="sqlite:///FILE or postgresql+psycopg://...") from error
    except ImportError as error:
        raise _build_driver_error(error) from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(
            f"{parsed.get_backend_name()} is not supported", advice="sqlite:///FILE or postgresql+psycopg://..."
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise UsageError("the database must be a file", advice="sqlite:///FILE")
    return parsed


def _build_driver_error(error: ImportError) -> MachineError:
    return MachineError(f"the PostgreSQL driver is not installed: {error}", advice="pip install 'mergemill[postgres]'")


def _open_sqlite(url: URL, *, create: bool) -> Engine:
    path = Path(url.database or "")
    if not path.exists():
        if not create:
            raise InputError(f"there is no database {path}", advice="mergemill run makes one; --db names another")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {path.parent}: {error.strerror}") from error
    elif path.is_dir():
        raise InputError(f"{path} is a folder, not a database")
    elif not path.is_file():
        raise InputError(f"{path} is not a regular file, and so no database")
    read_only = path.exists() and not is_writable(path)
    engine = create_engine(_build_read_only_url(path) if read_only else url, connect_args={"timeout": LOCK_SECONDS})
    event.listen(engine, "connect", _configure_read_only if read_only else _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def is_writable(path: Path) -> bool:
    """Return whether an SQLite file can be written: it and its folder, where SQLite keeps its log."""
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def build_read_only_uri(path: Path) -> str:
    """Return the URI with which SQLite opens a file for reading only.

    In a folder that cannot be written SQLite cannot share memory with a writer; a file without a log is then opened as
    a file that nobody changes.
    """
    log = path.with_name(f"{path.name}-wal")
    settled = not os.access(path.absolute().parent, os.W_OK) and not (log.exists() and log.stat().st_size)
    return f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if settled else ''}"


def _build_read_only_url(path: Path) -> URL:
    name, _, query = build_read_only_uri(path).partition("?")
    return URL.create("sqlite", database=name, query={"uri": "true", **dict(parse_qsl(query))})


def _configure_read_only(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """Set explicit transactions, WAL (readers and the writer do not block each other) and foreign keys."""
    # Left to itself the driver begins a transaction only before the first write, so reads would see several states.
    connection.isolation_level = None
    # While another process writes a database that is not in this mode yet, SQLite reports the lock without a wait.
    Retrying(
        retry=retry_if_exception(_is_lock), stop=stop_after_delay(LOCK_SECONDS), wait=wait_random(0, 0.1), reraise=True
    )(connection.execute, "PRAGMA journal_mode=WAL")
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _is_lock(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once: a transaction that turns from reading to writing cannot wait for it.
    writes = connection.get_execution_options().get("write")
    driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")


# ------------------------------------------------------------------------------------------------------ errors

_SQLITE_ERRORS: tuple[tuple[str, type[InputError] | type[Transient], str, str], ...] = (
    ("file is not a database", InputError, "is not a database", "name another file with --db"),
    ("malformed", InputError, "is damaged", "restore it from a copy"),
    ("disk is full", Transient, "cannot grow: the disk is full", "free some space and run the same command again"),
    (
        "disk i/o",
        Transient,
        "cannot be read or written: disk I/O error",
        "free some space and run the same command again",
    ),
    ("locked", Transient, "is locked by another process", "wait for the other mergemill to end, then run this again"),
    ("readonly", InputError, "is read-only", "make the file and its folder writable, then run this again"),
    (
        "unable to open",
        InputError,
        "cannot be opened",
        "make the file readable and its folder writable for this user, then run this again",
    ),
)
"""Part of SQLite's message, error class, message and advice."""


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Translate a database's errors into mergemill's; those of a bug stay as they are."""
    try:
        yield
    except ImportError as error:
        raise _build_driver_error(error) from error
    except UnicodeEncodeError as error:
        raise InputError(f"no name has {error.object[error.start]!a}: names are UTF-8") from error
    except IntegrityError:
        raise
    except (DatabaseError, sqlite3.DatabaseError) as error:
        raise _translate(url, error) from error


def _translate(url: str, error: Exception) -> Exception:
    cause: Any = getattr(error, "orig", None) or error
    message = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    for words, kind, sentence, advice in _SQLITE_ERRORS:
        if words in message.lower():
            return kind(f"{url} {sentence}", advice=advice)
    if isinstance(error, OperationalError) and not isinstance(cause, sqlite3.Error):
        advice = "start it or correct --db, then run this again"
        return NoAnswerError(f"no answer from the database: {message}", advice=advice)
    return error
