"""Verdicts on statements, and their findings"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "verdict",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("added_at", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=False),
        sa.Column("candidate", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("underspecified", sa.Float(), nullable=False),
        sa.Column("unfair_tests", sa.Float(), nullable=False),
        sa.Column("set_aside", sa.String(), nullable=True),
        sa.Column("n_findings", sa.Integer(), nullable=False),
        sa.Column("n_opinions", sa.Integer(), nullable=False),
        sa.Column("agreement", sa.Float(), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_verdict"),
        sa.UniqueConstraint("id", name="uq_verdict_id"),
        sa.ForeignKeyConstraint(["parent"], ["verification.id"], name="fk_verdict_parent"),
        sa.ForeignKeyConstraint(["candidate"], ["candidate.id"], name="fk_verdict_candidate"),
    )
    for column in ("parent", "candidate", "name"):
        op.create_index(f"ix_verdict_{column}", "verdict", [column])
    op.create_table(
        "finding",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("quote", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_finding"),
        sa.ForeignKeyConstraint(["verdict"], ["verdict.id"], name="fk_finding_verdict"),
    )
    for column in ("verdict", "rule"):
        op.create_index(f"ix_finding_{column}", "finding", [column])


def downgrade() -> None:
    op.drop_table("finding")
    op.drop_table("verdict")
