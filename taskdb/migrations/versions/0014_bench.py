"""Frozen sets of subjects, and runs on them"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_table(
        "bench_set",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("held_out", sa.Boolean(), nullable=False),
        sa.Column("n_subjects", sa.Integer(), nullable=False),
    )
    op.create_index("ix_bench_set_name", "bench_set", ["name"])
    _create_table(
        "bench_run",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("parent", "name", "scaffold", "model")),
        sa.Column("checkpoint", sa.String(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("n_rollouts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["bench_set.id"], name="fk_bench_run_parent"),
    )
    op.create_index("ix_bench_run_parent", "bench_run", ["parent"])


def _create_table(table: str, *columns: sa.schema.SchemaItem) -> None:
    op.create_table(
        table,
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("added_at", sa.String(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("seq", name=f"pk_{table}"),
        sa.UniqueConstraint("id", name=f"uq_{table}_id"),
    )
