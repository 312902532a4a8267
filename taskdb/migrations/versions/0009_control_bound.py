"""Bound of blind controls as a column of tasks"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("task", sa.Column("control_bound", sa.Float(), nullable=True))
