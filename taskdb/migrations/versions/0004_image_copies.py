"""Copies of images in registries"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "image_copy",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("added_at", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("image_digest", sa.String(), nullable=False),
        sa.Column("reference", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_image_copy"),
        sa.UniqueConstraint("id", name="uq_image_copy_id"),
    )
    op.create_index("ix_image_copy_image", "image_copy", ["image"])


def downgrade() -> None:
    op.drop_table("image_copy")
