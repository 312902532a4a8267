"""Who wrote the tests, as a column of candidates and tasks; the listings of all changes are written again

So far no change without tests became a candidate for which a model writes them.
"""

import sqlalchemy as sa
from alembic import op

from taskdb import listing
from taskdb.schema.added_columns import add_missing_columns

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("candidate", "task", "task_listing"):
        op.add_column(table, sa.Column("tests", sa.String(), nullable=False, server_default="human"))
    connection = op.get_bind()
    if connection.execute(sa.text("SELECT max(seq) FROM change")).scalar():
        add_missing_columns(connection)  # listings are written with columns that were declared since
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
