"""Measurements of simulators: what they predict for submissions that really were graded, too"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "simulator_measurement",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("added_at", sa.String(), nullable=False),
        *(
            sa.Column(name, sa.String(), nullable=False)
            for name in ("parent", "name", "environment", "simulator", "prompt", "kind", "submission", "grader")
        ),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("resolved", sa.Boolean(), nullable=False),
        sa.Column("predicted", sa.Boolean(), nullable=True),
        sa.Column("probability", sa.Float(), nullable=True),
        sa.Column("at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["task.id"], name="fk_simulator_measurement_parent"),
        sa.PrimaryKeyConstraint("seq", name="pk_simulator_measurement"),
        sa.UniqueConstraint("id", name="uq_simulator_measurement_id"),
    )
    for name in ("parent", "simulator"):
        op.create_index(f"ix_simulator_measurement_{name}", "simulator_measurement", [name])
