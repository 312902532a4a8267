"""Sketches of candidates"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sketch",
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("change", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key", "change", name="pk_sketch"),
        sa.ForeignKeyConstraint(["change"], ["change.seq"], name="fk_sketch_change"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("sketch")
