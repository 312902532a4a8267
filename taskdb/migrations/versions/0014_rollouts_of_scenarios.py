"""Rollouts of scenarios: their parent is no task

The foreign key of `rollout.parent` to `task` goes, and a column holds the environment. SQLite drops no foreign keys;
its documentation (ALTER TABLE, section 7) permits to edit the stored definition of a table for that, as the rows stay
what they are. To copy the table instead would break the foreign keys of trajectories within the transaction.
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

FOREIGN_KEY = re.compile(r",\s*CONSTRAINT fk_rollout_parent FOREIGN KEY\s*\(parent\) REFERENCES task \(id\)")


def upgrade() -> None:
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
