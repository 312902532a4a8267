"""Themes, worlds, scenarios, simulated conversations, measurements of simulators; scenarios are parents of rollouts

The foreign key of `rollout.parent` to `task` goes, and a column holds the environment. SQLite drops no foreign keys;
its documentation (ALTER TABLE, section 7) permits to edit the stored definition of a table for that, as the rows stay
what they are. To copy the table instead would break the foreign keys of trajectories within the transaction.
"""

import re

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
FOREIGN_KEY = re.compile(r",\s*CONSTRAINT fk_rollout_parent FOREIGN KEY\s*\(parent\) REFERENCES task \(id\)")


def upgrade() -> None:
    _create_worlds_and_simulations()
    _create_measurements()
    _free_rollouts_from_tasks()


def _create_worlds_and_simulations() -> None:
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


def _create_measurements() -> None:
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


def _free_rollouts_from_tasks() -> None:
    op.add_column("rollout", sa.Column("environment", sa.String(), nullable=False, server_default=""))
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.drop_constraint("fk_rollout_parent", "rollout", type_="foreignkey")
        return
    definition = str(connection.execute(sa.text("SELECT sql FROM sqlite_master WHERE name = 'rollout'")).scalar())
    edited, n_edits = FOREIGN_KEY.subn("", definition)
    if n_edits != 1:
        raise RuntimeError(f"the table rollout has {n_edits} foreign keys to task")
    version = int(connection.execute(sa.text("PRAGMA schema_version")).scalar_one())
    op.execute("PRAGMA writable_schema = ON")
    statement = sa.text("UPDATE sqlite_master SET sql = :edited WHERE type = 'table' AND name = 'rollout'")
    connection.execute(statement, {"edited": edited})
    op.execute(f"PRAGMA schema_version = {version + 1}")
    op.execute("PRAGMA writable_schema = RESET")
