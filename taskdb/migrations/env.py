"""Alembic's entry point. It is started by `taskdb.schema.prepare` only, with the connection in the configuration.

To write a migration: change `taskdb/tables.py`, then `just migration "what changes"`, read the file, set REVISION in
`taskdb.schema`.
"""

from alembic import context

from taskdb.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
