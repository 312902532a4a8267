"""Runs of the tests that certified tasks took: in the verification of their change and for their certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, text

from taskdb.records import Certificate, Verification
from taskdb.schema.batches import execute_in_batches
from taskdb.store import Store, load_field, load_record

_BATCH = 500


def read_runs(connection: Connection, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """Return the runs of each task (id), by name.

    Keys are `task` (id), `name`, `verification` (kind of run -> number, shared by all tasks of the change),
    `certificate` (runs, null for tasks without one), `exploits` (number), `submissions` (number of those that made the
    exploits), `exploits_of` (name of the task on whose exploits it relies, or null) and `total`.
    """
    rows = sorted(execute_in_batches(connection, _TASKS, list(tasks)), key=lambda row: (row.name, row.id))
    return [_count_runs(connection, row) for row in rows]


def count_submissions(exploits: Collection[str], combined: Mapping[str, Collection[str]]) -> int:
    """Return the number of submissions that made the exploits of a certificate.

    Args:
        exploits: names of all exploits.
        combined: name of a submission that made several exploits -> their names.
    """
    return len(exploits) - sum(map(len, combined.values())) + len(combined)


def iter_certified_runs(store: Store) -> Iterator[dict[str, Any]]:
    """Yield the runs of all certified tasks of current lineages, in the form of `read_runs`."""
    with store.read_transaction() as connection:
        tasks = connection.execute(_CERTIFIED).scalars().all()
        for start in range(0, len(tasks), _BATCH):
            yield from read_runs(connection, tasks[start : start + _BATCH])


def _count_runs(connection: Connection, row: Any) -> dict[str, Any]:
    # A task without an environment descends from a candidate, for which nothing was run.
    runs = load_field(connection, Verification, row.parent, "runs") or []
    kinds = Counter(run["variant"] for run in runs)
    certificate = load_record(connection, Certificate, row.certificate) if row.certificate else None
    evaluations = certificate.evaluations if certificate else None
    reference = certificate.exploits_of if certificate else None
    return {
        "task": row.id,
        "name": row.name,
        "verification": dict(sorted(kinds.items())),
        "certificate": evaluations,
        "exploits": len(certificate.exploits) if certificate else 0,
        "submissions": count_submissions(certificate.exploits, certificate.combined_exploits) if certificate else 0,
        "exploits_of": reference.name if reference else None,
        "total": kinds.total() + (evaluations or 0),
    }


_TASKS = text("""SELECT t.id, t.name, t.parent, k.id AS certificate FROM task t
                 LEFT JOIN certificate k ON k.seq = (SELECT max(x.seq) FROM certificate x WHERE x.parent = t.id)
                 WHERE t.id IN :keys""").bindparams(bindparam("keys", expanding=True))
_CERTIFIED = text("SELECT id FROM tasks WHERE status = 'certified' ORDER BY name, id")
