"""Bound of blind controls as a column of tasks, and the listings of all changes"""

import sqlalchemy as sa
from alembic import op

from taskdb import listing

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    op.add_column("task", sa.Column("control_bound", sa.Float(), nullable=True))
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
