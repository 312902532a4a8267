"""Tasks of many kinds: parents that are candidates, images of their own, refusals by kind"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_INDEXED = ("parent", "candidate", "source", "name", "kind", "repo")
_TEXTS = (
    "id",
    "body",
    "added_at",
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
)
_MOVE = """
INSERT INTO task_anew (seq, id, body, added_at, parent, candidate, source, name, kind, repo, language, language_version,
                       license, base_commit, created_at, n_fail_to_pass, n_pass_to_pass, published, words)
SELECT seq, id, body, added_at, parent, candidate, source, name, kind, repo, language, language_version,
       license, base_commit, created_at, n_fail_to_pass, n_pass_to_pass, published, words FROM task
"""


def upgrade() -> None:
    op.add_column("rejection", sa.Column("kind", sa.String(), nullable=True))
    op.execute("UPDATE rejection SET kind = 'bugfix' WHERE stage = 'derive'")
    op.add_column("event", sa.Column("kind", sa.String(), nullable=True))
    op.execute("UPDATE event SET kind = 'bugfix' WHERE stage IN ('derive', 'certify')")
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        _anew()
    else:
        op.drop_constraint("fk_task_parent", "task", type_="foreignkey")
        for column in ("environment", "image"):
            op.add_column("task", sa.Column(column, sa.String(), nullable=False, server_default=""))
            op.alter_column("task", column, server_default=None)
    _fill(connection)


def _anew() -> None:
    """SQLite cannot drop a foreign key: the table is written anew, and what points to it waits meanwhile."""
    op.execute("CREATE TEMP TABLE kept AS SELECT * FROM certificate")
    op.execute("DELETE FROM certificate")
    for column in _INDEXED:
        op.drop_index(f"ix_task_{column}", "task")
    op.create_table(
        "task_anew",
        sa.Column("seq", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in _TEXTS),
        sa.Column("n_fail_to_pass", sa.Integer(), nullable=False),
        sa.Column("n_pass_to_pass", sa.Integer(), nullable=False),
        sa.Column("published", sa.String(), nullable=True),
        sa.Column("words", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False, server_default=""),
        sa.Column("image", sa.String(), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("seq", name="pk_task"),
        sa.UniqueConstraint("id", name="uq_task_id"),
        sa.ForeignKeyConstraint(["candidate"], ["candidate.id"], name="fk_task_candidate"),
    )
    op.execute(_MOVE)
    op.drop_table("task")
    op.rename_table("task_anew", "task")
    for column in _INDEXED:
        op.create_index(f"ix_task_{column}", "task", [column])
    op.execute("INSERT INTO certificate SELECT * FROM kept")
    op.execute("DROP TABLE kept")


def _fill(connection: sa.Connection) -> None:
    update = sa.text("UPDATE task SET environment = 'verified', image = :image WHERE id = :id")
    for row in connection.execute(sa.text("SELECT id, body FROM task")).all():
        connection.execute(update, {"id": row.id, "image": json.loads(row.body)["image"]})
