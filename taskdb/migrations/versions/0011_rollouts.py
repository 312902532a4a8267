"""Rollouts, trajectories and selections of them"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TYPES = {"text": sa.String, "integer": sa.Integer, "number": sa.Float, "boolean": sa.Boolean}
ROLLOUT = (
    *((name, "text") for name in ("parent", "name", "plan", "scaffold", "scaffold_version", "model", "checkpoint")),
    ("attempt", "integer"),
    ("retry", "integer"),
    ("origin", "text"),
    ("status", "text"),
    ("reason", "text?"),
    ("value", "number?"),
    ("resolved", "boolean"),
    *((name, "integer") for name in ("n_leaks", "requests", "prompt_tokens", "completion_tokens")),
    ("cost", "number"),
    ("seconds", "number"),
    ("at", "text"),
)
TRAJECTORY = (
    ("parent", "text"),
    ("name", "text"),
    ("root", "integer"),
    *((name, "text") for name in ("role", "scaffold", "model")),
    ("attempt", "integer"),
    ("value", "number?"),
    *((name, "integer") for name in ("n_requests", "n_branches", "prompt_tokens", "completion_tokens")),
    ("has_token_ids", "boolean"),
)
SELECTION = (("parent", "text"), ("selected", "boolean"), ("reason", "text?"), ("at", "text"))


def upgrade() -> None:
    for table, columns, parent, indexed in (
        ("rollout", ROLLOUT, "task", ("parent", "name", "plan")),
        ("trajectory", TRAJECTORY, "rollout", ("parent", "name")),
        ("trajectory_selection", SELECTION, "trajectory", ("parent",)),
    ):
        op.create_table(
            table,
            sa.Column("seq", sa.Integer(), nullable=False),
            sa.Column("id", sa.String(), nullable=False),
            sa.Column("body", sa.LargeBinary(), nullable=False),
            sa.Column("added_at", sa.String(), nullable=False),
            *(sa.Column(name, TYPES[kind.rstrip("?")](), nullable=kind.endswith("?")) for name, kind in columns),
            sa.ForeignKeyConstraint(["parent"], [f"{parent}.id"], name=f"fk_{table}_parent"),
            sa.PrimaryKeyConstraint("seq", name=f"pk_{table}"),
            sa.UniqueConstraint("id", name=f"uq_{table}_id"),
        )
        for name in indexed:
            op.create_index(f"ix_{table}_{name}", table, [name])
