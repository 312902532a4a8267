"""The task database: records, artifacts, tables, the store and its queries."""
