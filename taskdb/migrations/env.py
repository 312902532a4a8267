"""Alembic's entry point. `taskdb.schema.database.prepare` alone starts it, with the connection in the configuration.

To write a migration: change `taskdb/schema/tables.py`, add a file to `versions/`, set
REVISION in `taskdb.schema.database`.
"""

from alembic import context

from taskdb.schema.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
