"""First tables"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _mined()
    _built()
    _derived()
    _others()


def downgrade() -> None:
    names = "change event meta score bundle rejection certificate task verification environment candidate pull_request"
    for name in names.split():
        op.drop_table(name)


def _mined() -> None:
    texts: tuple[str, ...] = ("source", "repo", "name", "shape", "author", "title", "merged_at")
    _record(
        "pull_request", texts, [sa.Column("number", sa.Integer(), nullable=True)], indexed=("source", "repo", "name")
    )
    texts = ("parent", "source", "repo", "name", "language", "license", "base_commit", "created_at")
    numbers = (_whole("gold_lines"), _whole("test_lines"))
    _record("candidate", texts, numbers, indexed=texts[:4], foreign={"parent": "pull_request"})
    op.create_table(
        "change",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *map(_text, ("source", "name", "merge_commit", "pull_request", "result")),
        sa.ForeignKeyConstraint(["pull_request"], ["pull_request.id"], name="fk_change_pull_request"),
        sa.UniqueConstraint("source", "name", "merge_commit", name="uq_change_source"),
    )
    _index("change", ("name", "result"))


def _built() -> None:
    texts: tuple[str, ...] = ("parent", "name", "language_version", "image", "image_digest")
    numbers: tuple[sa.Column[Any], ...] = (
        _whole("image_bytes"),
        _whole("attempt"),
        *map(_real, ("collected_share", "seconds", "test_seconds")),
    )
    _record("environment", texts, numbers, indexed=("parent", "name"), foreign={"parent": "candidate"})
    texts = ("parent", "candidate", "name")
    numbers = (*map(_whole, ("n_fail_to_pass", "n_pass_to_pass", "n_flaky", "repeats")), _real("seconds"))
    foreign = {"parent": "environment", "candidate": "candidate"}
    _record("verification", texts, numbers, indexed=texts, foreign=foreign)


def _derived() -> None:
    texts = (
        "parent",
        "candidate",
        "source",
        "name",
        "kind",
        "repo",
        "language",
        "language_version",
        "license",
        "base_commit",
        "created_at",
        "words",
    )
    numbers: tuple[sa.Column[Any], ...]
    numbers = (*map(_whole, ("n_fail_to_pass", "n_pass_to_pass")), sa.Column("published", sa.String(), nullable=True))
    foreign = {"parent": "verification", "candidate": "candidate"}
    _record("task", texts, numbers, indexed=texts[:6], foreign=foreign)
    numbers = (_real("noop"), _real("seconds"))
    _record("certificate", ("parent", "name"), numbers, indexed=("parent", "name"), foreign={"parent": "task"})


def _others() -> None:
    texts = ("parent", "source", "name", "stage", "reason", "detail")
    _record("rejection", texts, (_real("seconds"),), indexed=texts[:5])
    _record("bundle", ("format", "out", "manifest_sha256"), (_whole("n_tasks"),))
    numbers = [sa.Column("value", sa.Float(), nullable=True), sa.Column("resolved", sa.Boolean(), nullable=False)]
    _record("score", ("task", "submission"), numbers, indexed=("task",))
    op.create_table(
        "event",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *map(_text, ("stage", "name", "source", "record", "detail", "at")),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("ok", sa.Boolean(), nullable=False),
        _real("seconds"),
    )
    _index("event", ("name", "parent", "record"))
    op.create_table("meta", sa.Column("key", sa.String(), primary_key=True), _text("value"))


def _record(
    name: str,
    texts: Sequence[str],
    others: Sequence[sa.Column[Any]],
    *,
    indexed: Sequence[str] = (),
    foreign: Mapping[str, str] | None = None,
) -> None:
    """A table of records; `foreign` names for a column the table whose id it holds."""
    op.create_table(
        name,
        sa.Column("seq", sa.Integer(), primary_key=True),
        *map(_text, ("id", "body", "added_at", *texts)),
        *others,
        sa.UniqueConstraint("id", name=f"uq_{name}_id"),
        *(
            sa.ForeignKeyConstraint([column], [f"{table}.id"], name=f"fk_{name}_{column}")
            for column, table in (foreign or {}).items()
        ),
    )
    _index(name, indexed)


def _index(table: str, columns: Sequence[str]) -> None:
    for column in columns:
        op.create_index(f"ix_{table}_{column}", table, [column])


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(), nullable=False)


def _whole(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _real(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Float(), nullable=False)
