"""Alembic's entry point. `taskdb.schema.database.prepare` alone starts it, with the connection in the configuration.

To write a migration: change `taskdb/schema/tables.py`, add a file to `versions/`, set
REVISION in `taskdb.schema.database`. A column of tasks (`taskdb/schema/task_columns.py`) needs none.
"""

from alembic import context

from taskdb import listing
from taskdb.schema.added_columns import add_missing_columns
from taskdb.schema.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
is_newest = context.get_context().get_current_revision() == context.get_head_revision()
if is_newest and add_missing_columns(connection):
    listing.rebuild(connection)
