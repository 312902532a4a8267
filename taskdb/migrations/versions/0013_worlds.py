"""Themes, worlds, scenarios and simulated conversations, with their certificates and rejections"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TYPES = {"text": sa.String, "integer": sa.Integer, "number": sa.Float}
THEME = (
    *((name, "text") for name in ("parent", "source", "name", "label", "license")),
    ("usefulness", "integer"),
    ("modelability", "integer"),
    ("model", "text"),
)
WORLD = (
    ("parent", "text?"),
    *((name, "text") for name in ("source", "name", "origin", "environment", "license", "model")),
    *((name, "integer") for name in ("n_tools", "n_queries", "n_changes", "n_attributes")),
)
WORLD_CERTIFICATE = (
    ("parent", "text"),
    ("name", "text"),
    *((name, "integer") for name in ("n_calls", "rounds", "passed", "warned", "failed")),
    ("pass_rate", "number?"),
    ("score", "number?"),
)
SCENARIO = (
    *((name, "text") for name in ("parent", "world", "name", "environment", "license", "model")),
    ("n_checks", "integer"),
)
SCENARIO_CERTIFICATE = (
    *((name, "text") for name in ("parent", "name", "solution_origin")),
    *((name, "integer") for name in ("n_calls", "n_tools", "n_queries", "n_kept", "mutations", "mutations_noticed")),
)
WORLD_REJECTION = tuple((name, "text") for name in ("parent", "source", "name", "step", "reason", "detail"))
SIMULATED_CONVERSATION = (
    *((name, "text") for name in ("parent", "name", "environment", "domain", "pack_version", "profile", "simulator")),
    ("prompt", "text"),
    ("sample", "integer"),
    ("scenario", "text"),
    ("failure", "text?"),
    ("license", "text"),
    ("answer", "text"),
    ("n_turns", "integer"),
    ("n_calls", "integer"),
    ("trajectory", "text"),
)
SIMULATION_REJECTION = tuple(
    (name, "text")
    for name in (
        *("parent", "name", "environment", "domain", "profile", "simulator", "answer", "step", "reason", "detail"),
    )
)


def upgrade() -> None:
    for table, columns, parent, indexed in (
        ("theme", THEME, None, ("parent", "source", "name")),
        ("world", WORLD, "theme", ("parent", "source", "name")),
        ("world_certificate", WORLD_CERTIFICATE, "world", ("parent",)),
        ("scenario", SCENARIO, "world", ("parent", "world", "name")),
        ("scenario_certificate", SCENARIO_CERTIFICATE, "scenario", ("parent",)),
        ("world_rejection", WORLD_REJECTION, None, ("parent", "name", "step", "reason")),
        ("simulated_conversation", SIMULATED_CONVERSATION, None, ("parent", "name", "answer")),
        ("simulation_rejection", SIMULATION_REJECTION, None, ("parent", "name", "answer")),
    ):
        foreign = [sa.ForeignKeyConstraint(["parent"], [f"{parent}.id"], name=f"fk_{table}_parent")] if parent else []
        op.create_table(
            table,
            sa.Column("seq", sa.Integer(), nullable=False),
            sa.Column("id", sa.String(), nullable=False),
            sa.Column("body", sa.LargeBinary(), nullable=False),
            sa.Column("added_at", sa.String(), nullable=False),
            *(sa.Column(name, TYPES[kind.rstrip("?")](), nullable=kind.endswith("?")) for name, kind in columns),
            *foreign,
            sa.PrimaryKeyConstraint("seq", name=f"pk_{table}"),
            sa.UniqueConstraint("id", name=f"uq_{table}_id"),
        )
        for name in indexed:
            op.create_index(f"ix_{table}_{name}", table, [name])
