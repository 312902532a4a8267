"""Tags of changes"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tagging",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *map(_text, ("id", "body", "added_at", "parent", "name", "kind", "language", "size")),
        _whole("changed_files"),
        sa.Column("changed_lines", sa.Integer(), nullable=True),
        sa.UniqueConstraint("id", name="uq_tagging_id"),
        sa.ForeignKeyConstraint(["parent"], ["pull_request.id"], name="fk_tagging_parent"),
    )
    op.create_table(
        "tag",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *map(_text, ("tagging", "kind", "rule", "quote", "route")),
        _whole("place"),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["tagging"], ["tagging.id"], name="fk_tag_tagging"),
    )
    for table, column in (("tagging", "parent"), ("tagging", "kind"), ("tag", "tagging"), ("tag", "kind")):
        op.create_index(f"ix_{table}_{column}", table, [column])
    op.add_column("change", sa.Column("tagging", sa.String(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("change") as change:
        change.drop_column("tagging")
    op.drop_table("tag")
    op.drop_table("tagging")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=False)


def _whole(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)
