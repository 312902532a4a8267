"""Tables of listings of changes, kinds and tasks, audits, and columns of values that SQL cannot compute

Everything is one transaction; rows are read and written in batches.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from taskdb.schema import search
from taskdb.schema.stored_records import ListBase, ListBatch, compress_body, pack_body, store_lists

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BATCH = 500

NEW_COLUMNS = (
    ("candidate", "n_gold_files", sa.Integer(), "0"),
    ("verification", "n_gold_runs", sa.Integer(), "0"),
    ("certificate", "n_gold_runs", sa.Integer(), "0"),
    ("task", "image_digest", sa.String(), ""),
    ("task", "strength", sa.Float(), None),
    ("task", "n_controls", sa.Integer(), "0"),
    ("task", "test_seconds", sa.Float(), "0"),
    ("task", "statement_tokens", sa.Integer(), "0"),
    ("task", "split", sa.String(), ""),
)
"""Table, column, type and the value before it is filled; None: nullable."""

CHANGE_LISTING = (
    ("change", "integer"),
    *((name, "text") for name in ("source", "name", "repo")),
    ("number", "integer?"),
    *((name, "text") for name in ("shape", "title", "author", "merged_at", "status")),
    *((n, "text?") for n in ("rejected_by", "reason", "detail", "language", "license", "change_kind", "size")),
    ("set_aside", "text?"),
    ("test_lines", "integer?"),
    ("pull_request", "text"),
    *((name, "text?") for name in ("candidate", "environment", "verification", "verdict", "task")),
    *((name, "text?") for name in ("certificate", "rejection", "tags")),
    ("state", "integer?"),
)
DERIVATION_LISTING = (
    ("seq", "integer"),
    ("change", "integer"),
    *((name, "text") for name in ("source", "name", "repo", "merged_at")),
    ("change_kind", "text?"),
    ("candidate", "text"),
    ("verification", "text?"),
    ("kind", "text"),
    ("status", "text"),
    *((n, "text?") for n in ("rejected_by", "reason", "detail", "task", "task_name", "certificate", "rejection")),
)
TASK_LISTING = (
    ("task", "integer"),
    ("change", "integer"),
    *((name, "text") for name in ("id", "name", "kind", "repo", "language", "language_version", "license", "source")),
    ("status", "text"),
    ("base_commit", "text"),
    ("n_fail_to_pass", "integer"),
    ("n_pass_to_pass", "integer"),
    ("created_at", "text"),
    ("published", "text?"),
    *((name, "text") for name in ("environment", "image", "change_name")),
    ("change_kind", "text?"),
    ("candidate", "text"),
    ("verification", "text?"),
    ("certificate", "text?"),
    *((n, "number?") for n in ("strength", "control_bound", "flaky_bound", "underspecified", "unfair_tests")),
    ("set_aside", "text?"),
    ("test_seconds", "number"),
    *((name, "integer") for name in ("statement_tokens", "changed_files", "changed_lines")),
    *((name, "text") for name in ("family", "split", "difficulty")),
    ("audited", "text?"),
    ("image_digest", "text"),
    ("added_at", "text"),
)
TYPES = {"integer": sa.Integer, "text": sa.String, "number": sa.Float}


def upgrade() -> None:
    connection = op.get_bind()
    for table, column, kind, value in NEW_COLUMNS:
        op.add_column(table, sa.Column(column, kind, nullable=value is None, server_default=value))
        if value is not None and connection.dialect.name == "postgresql":
            op.alter_column(table, column, server_default=None)
    _create_tables()
    for table, key, columns in (
        ("change_listing", "change", CHANGE_LISTING),
        ("derivation_listing", "seq", DERIVATION_LISTING),
        ("task_listing", "task", TASK_LISTING),
    ):
        op.create_table(
            table,
            *(
                sa.Column(name, TYPES[kind.rstrip("?")](), nullable=kind.endswith("?"), autoincrement=name == "seq")
                for name, kind in columns
            ),
            sa.PrimaryKeyConstraint(key, name=f"pk_{table}"),
        )
    _create_counts()
    for table, compute in COMPUTE.items():
        _fill(connection, table, compute)
    op.drop_column("task", "search_text")
    search.create_index(connection)
    _pack_bodies(connection)


def _create_tables() -> None:
    op.create_table(
        "test_list",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo", sa.String(), nullable=False),
        sa.Column("base", sa.Integer(), nullable=True),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_test_list"),
        sa.UniqueConstraint("id", name="uq_test_list_id"),
    )
    op.create_table(
        "audit",
        sa.Column("seq", sa.Integer(), nullable=False),
        *(sa.Column(n, sa.String(), nullable=False) for n in ("id", "body", "added_at", "parent", "name")),
        sa.Column("clean", sa.Boolean(), nullable=False),
        sa.Column("n_findings", sa.Integer(), nullable=False),
        sa.Column("image_digest", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["task.id"], name="fk_audit_parent"),
        sa.PrimaryKeyConstraint("seq", name="pk_audit"),
        sa.UniqueConstraint("id", name="uq_audit_id"),
    )
    op.create_index("ix_audit_parent", "audit", ["parent"])


def _create_counts() -> None:
    op.create_table(
        "change_state",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_change_state"),
        sa.UniqueConstraint("state", name="uq_change_state_state"),
    )
    for table, texts, numbers in (
        ("funnel_count", ("source", "dimension", "value", "outputs", "rejected_by", "reason"), ()),
        ("task_count", ("facet", "value"), ("simulated",)),
    ):
        op.create_table(
            table,
            *(sa.Column(name, sa.String(), nullable=False) for name in texts),
            *(sa.Column(name, sa.Integer(), nullable=False) for name in numbers),
            sa.Column("n", sa.BigInteger(), nullable=False),
            sa.PrimaryKeyConstraint(*texts, *numbers, name=f"pk_{table}"),
            sqlite_with_rowid=False,
        )


def _fill(connection: sa.Connection, table: str, compute: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Compute the new columns of a table from the records' JSON."""
    update: sa.TextClause | None = None
    for rows in _read_batches(connection, table):
        changes = [{"seq": row.seq, **compute(json.loads(row.body))} for row in rows]
        if update is None:
            assignments = ", ".join(f"{name} = :{name}" for name in changes[0] if name != "seq")
            update = sa.text(f"UPDATE {table} SET {assignments} WHERE seq = :seq")  # noqa: S608 - fixed names
        connection.execute(update, changes)


def _pack_bodies(connection: sa.Connection) -> None:
    """Replace the JSON of records by its stored form, in a new column behind those that are filtered by."""
    is_sqlite = connection.dialect.name == "sqlite"
    bases: dict[str, ListBase] = {}
    for table in PACKED:
        empty = sa.text("x''" if is_sqlite else "''::bytea")
        op.add_column(table, sa.Column("packed", sa.LargeBinary(), nullable=False, server_default=empty))
        update = sa.text(f"UPDATE {table} SET packed = :packed WHERE seq = :seq")  # noqa: S608 - fixed names
        for rows in _read_batches(connection, table):
            lists = ListBatch()
            changes = [
                {
                    "seq": row.seq,
                    "packed": compress_body(row.body.encode())
                    if table == "score"
                    else pack_body(json.loads(row.body), lists),
                }
                for row in rows
            ]
            store_lists(connection, lists, bases)
            connection.execute(update, changes)
        if not is_sqlite:
            op.alter_column(table, "packed", server_default=None)
        op.drop_column(table, "body")
        op.execute(f"ALTER TABLE {table} RENAME COLUMN packed TO body")


PACKED = (
    "pull_request",
    "tagging",
    "candidate",
    "environment",
    "verification",
    "verdict",
    "task",
    "certificate",
    "audit",
    "rejection",
    "bundle",
    "image_copy",
    "score",
)


def _compute_task(body: dict[str, Any]) -> dict[str, Any]:
    tests, controls = body["FAIL_TO_PASS"], body.get("controls", [])
    share = int(hashlib.sha256(body["repo"].lower().encode()).hexdigest()[:8], 16) / 0x1_0000_0000
    return {
        "image_digest": body["image_digest"],
        "strength": round(len(controls) / len(tests), 6) if tests and body.get("oracle") is None else None,
        "n_controls": len(controls),
        "test_seconds": body["test_seconds"],
        "statement_tokens": len(re.findall(r"\w+|[^\w\s]", body["problem_statement"])),
        "split": "train" if share < 0.9 else "test",
    }


COMPUTE: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "candidate": lambda body: {"n_gold_files": len(body["gold_files"])},
    "verification": lambda body: {
        "n_gold_runs": sum(one["variant"] == "gold" and one["killed_by"] is None for one in body["runs"])
    },
    "certificate": lambda body: {"n_gold_runs": body["gold"].count(1.0)},
    "task": _compute_task,
}


def _read_batches(connection: sa.Connection, table: str) -> Iterator[list[sa.Row[Any]]]:
    query = sa.text(f"SELECT seq, body FROM {table} WHERE seq > :seq ORDER BY seq LIMIT :batch")  # noqa: S608
    seq = -1
    while rows := connection.execute(query, {"seq": seq, "batch": BATCH}).all():
        yield list(rows)
        seq = rows[-1].seq
