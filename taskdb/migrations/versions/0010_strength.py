"""Strength of tests as measured by audits instead of the share of controls

Audits so far did not measure it, so that it is null for every task. The listings, which have it as a column, are
written again by the next revision: their definition reads tables that it makes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("task", "strength")
    op.add_column("audit", sa.Column("strength", sa.Float(), nullable=True))
    for table in ("audit", "task_listing"):
        op.add_column(table, sa.Column("untested_hunks", sa.String(), nullable=True))
