"""Names of the glossary in columns, record JSON and reasons

A record's id is the hash of its canonical JSON, and a record names its parent's id. Renaming a key of the JSON
therefore changes the id of the record and of all records below it. Tables are rewritten in the order of the data path;
the table `renamed_id` holds old and new ids meanwhile. Everything is one transaction.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from taskdb.schema.schema_0006 import REASONS, RECORDS, Body, compute_id

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BATCH = 500

COLUMNS = (
    ("tagging", "kind", "change_kind"),
    ("tag", "kind", "change_kind"),
    ("tag", "place", "rank"),
    ("finding", "place", "quote_source"),
    ("task", "words", "search_text"),
)
INDEXED = (("tagging", "kind", "change_kind"), ("tag", "kind", "change_kind"))


REFERENCES = (
    ("tag", "tagging"),
    ("finding", "verdict"),
    ("change", "pull_request"),
    ("change", "result"),
    ("change", "tagging"),
    ("score", "task"),
    ("event", "parent"),
    ("event", "record"),
)
"""Columns outside record tables that hold ids."""

ID_FIELDS = ("parent", "candidate")
ID_LISTS = ("other_candidates", "tasks")


def upgrade() -> None:
    connection = op.get_bind()
    with _without_foreign_keys(connection):
        for table, old, _ in INDEXED:
            op.drop_index(f"ix_{table}_{old}", table)
        for table, old, new in COLUMNS:
            op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
        for table, _, new in INDEXED:
            op.create_index(f"ix_{table}_{new}", table, [new])
        op.execute("CREATE TEMPORARY TABLE renamed_id (old VARCHAR PRIMARY KEY, new VARCHAR NOT NULL)")
        for table, record, rename, measured in RECORDS:
            _rewrite_table(connection, table, record, rename, measured)
        for table, column in REFERENCES:
            op.execute(
                f"UPDATE {table} SET {column} = (SELECT new FROM renamed_id WHERE old = {table}.{column}) "  # noqa: S608
                f"WHERE {column} IN (SELECT old FROM renamed_id)"
            )
        _rewrite_scores(connection)
        for table in ("rejection", "event"):
            for old, new in REASONS.items():
                statement = sa.text(f"UPDATE {table} SET reason = :new WHERE reason = :old")  # noqa: S608
                connection.execute(statement, {"old": old, "new": new})
        op.execute("DROP TABLE renamed_id")


class _without_foreign_keys:  # noqa: N801 - used like a function
    """Ids change in parents and children one after the other: foreign keys are checked at the end.

    SQLite defers them to the end of the transaction; PostgreSQL's are dropped and made again.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.keys: list[tuple[str, Any]] = []

    def __enter__(self) -> None:
        if self.connection.dialect.name == "sqlite":
            op.execute("PRAGMA defer_foreign_keys = ON")
            return
        inspector = sa.inspect(self.connection)
        for table in inspector.get_table_names():
            self.keys += [(table, key) for key in inspector.get_foreign_keys(table)]
        for table, key in self.keys:
            op.drop_constraint(key["name"], table, type_="foreignkey")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        for table, key in self.keys:
            op.create_foreign_key(
                key["name"], table, key["referred_table"], key["constrained_columns"], key["referred_columns"]
            )


def _rewrite_table(
    connection: sa.Connection, table: str, record: str, rename: Callable[[Body], None], measured: tuple[str, ...]
) -> None:
    columns = [column["name"] for column in sa.inspect(connection).get_columns(table)]
    id_columns = [name for name in ID_FIELDS if name in columns]
    assignments = ", ".join(f"{name} = :{name}" for name in ("id", "body", *id_columns))
    update = sa.text(f"UPDATE {table} SET {assignments} WHERE seq = :seq")  # noqa: S608
    for rows in _read_batches(connection, table):
        bodies = [(row, json.loads(row.body)) for row in rows]
        for _, body in bodies:
            rename(body)
        ids = _load_ids(connection, {one for _, body in bodies for one in _list_ids(body)})
        changes = []
        for row, body in bodies:
            _replace_ids(body, ids)
            new = compute_id(record, body, measured)
            text = json.dumps(body, sort_keys=True, separators=(",", ":"))
            if (new, text) != (row.id, row.body):
                changes.append({"seq": row.seq, "old": row.id, "id": new, "body": text, **_pick(body, id_columns)})
        if changes:
            connection.execute(update, changes)
        if moved := [{"old": one["old"], "new": one["id"]} for one in changes if one["old"] != one["id"]]:
            connection.execute(sa.text("INSERT INTO renamed_id (old, new) VALUES (:old, :new)"), moved)


def _replace_ids(body: Body, ids: dict[str, str]) -> None:
    for name in ID_FIELDS:
        if name in body:
            body[name] = ids.get(body[name], body[name])
    for name in ID_LISTS:
        if name in body:
            body[name] = sorted(ids.get(one, one) for one in body[name])


def _pick(body: Body, names: list[str]) -> Body:
    return {name: body[name] for name in names}


def _list_ids(body: Body) -> list[str]:
    return [body[name] for name in ID_FIELDS if name in body] + [one for name in ID_LISTS for one in body.get(name, ())]


def _read_batches(connection: sa.Connection, table: str) -> Iterator[list[sa.Row[Any]]]:
    query = sa.text(f"SELECT * FROM {table} WHERE seq > :seq ORDER BY seq LIMIT :batch")  # noqa: S608
    seq = -1
    while rows := connection.execute(query, {"seq": seq, "batch": BATCH}).all():
        yield list(rows)
        seq = rows[-1].seq


def _load_ids(connection: sa.Connection, ids: set[str]) -> dict[str, str]:
    query = sa.text("SELECT old, new FROM renamed_id WHERE old IN :ids").bindparams(sa.bindparam("ids", expanding=True))
    listed, found = sorted(ids), {}
    for start in range(0, len(listed), BATCH):
        rows = connection.execute(query, {"ids": listed[start : start + BATCH]})
        found.update({row.old: row.new for row in rows})
    return found


def _rewrite_scores(connection: sa.Connection) -> None:
    """A score's id is the hash of the task's id, the submission and the score."""
    update = sa.text("UPDATE score SET id = :id WHERE seq = :seq")
    for rows in _read_batches(connection, "score"):
        connection.execute(
            update,
            [
                {"seq": row.seq, "id": hashlib.sha256(f"{row.task} {row.submission} {row.body}".encode()).hexdigest()}
                for row in rows
            ],
        )
