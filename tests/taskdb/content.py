"""Content of a database without what depends on the moment: sequence numbers, dates, seconds."""

from __future__ import annotations

from typing import Any

from taskdb.queries import readonly
from taskdb.schema.mapping import RECORD_TABLES
from taskdb.store import Store

VIEWS = {
    "changes": "SELECT source, name, status, rejected_by, reason, candidate, task, certificate FROM changes",
    "derivations": "SELECT name, kind, status, reason, task, certificate FROM derivations",
    "tasks": "SELECT id, name, kind, repo, status, n_fail_to_pass, n_pass_to_pass FROM tasks",
    "events": "SELECT stage, kind, name, record, ok, reason FROM events",
}


def read_content(url: str) -> dict[str, list[str]]:
    """Return name of a record's table or of a view -> its rows, sorted; each row as often as it occurs."""
    with Store.open(url) as store:
        content: dict[str, list[str]] = {
            name: sorted(_format(row) for row in readonly.run_query(store, query)) for name, query in VIEWS.items()
        }
        for row, _ in RECORD_TABLES.values():
            table = str(row.__tablename__)
            query = f"SELECT id FROM {table} ORDER BY id"  # noqa: S608 - constant names
            content[table] = [record["id"] for record in readonly.run_query(store, query)]
    return content


def read_records(url: str) -> dict[str, list[str]]:
    """Return what two runs of the same changes must share: all content but events and copies of images."""
    return {name: rows for name, rows in read_content(url).items() if name not in ("image_copy", "events")}


def _format(row: dict[str, Any]) -> str:
    return repr([bool(value) if name == "ok" else value for name, value in row.items()])
