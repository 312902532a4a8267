"""Strength of tests as measured by audits instead of the share of controls, and the listings of all changes

Audits so far did not measure it, so that it is null for every task.
"""

import sqlalchemy as sa
from alembic import op

from taskdb import listing

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    op.drop_column("task", "strength")
    op.add_column("audit", sa.Column("strength", sa.Float(), nullable=True))
    for table in ("audit", "task_listing"):
        op.add_column(table, sa.Column("untested_hunks", sa.String(), nullable=True))
    listing.rebuild(connection)
    _check_counts(connection)


def _check_counts(connection: sa.Connection) -> None:
    """Compare the number of listed changes with that of changes."""
    listed, there = (
        connection.execute(sa.text(f"SELECT count(*) FROM {name}")).scalar()  # noqa: S608
        for name in ("change_listing", "change")
    )
    if listed != there:
        raise RuntimeError(f"{listed} of {there} changes are listed")
