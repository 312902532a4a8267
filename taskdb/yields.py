"""Yields: tasks and rejections per change and kind, and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text

from taskdb.records import Kind
from taskdb.store import Store

_DERIVATIONS = text("""SELECT source, name, kind, status, reason, task FROM derivations
                       ORDER BY merged_at DESC, name, kind, task_name""")


def count_by_change(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each change with tasks or rejected kinds, newest first: `change`, and a value for each kind.

    The value is None for a kind that is still open, `derived` or `certified` with the number of tasks (`certified 3`),
    or the reason of the rejection.
    """
    found: dict[tuple[str, str], dict[str, Counter[str]]] = {}
    for row in _select_rows(store, sources):
        kinds = found.setdefault((row.source, row.name), {})
        kinds.setdefault(row.kind, Counter())[row.reason or row.status] += 1
    return [
        {"change": name, **{kind.value: _format_counts(kinds.get(kind.value)) for kind in Kind}}
        for (_, name), kinds in found.items()
    ]


def count_by_kind(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each kind that was derived or rejected: `kind`, `changes`, `tasks`, `certified`, `rejected`."""
    rows = _select_rows(store, sources)
    found = []
    for kind in Kind:
        of_kind = [row for row in rows if row.kind == kind]
        reasons = Counter(row.reason for row in of_kind if row.reason)
        if of_kind:
            found.append(
                {
                    "kind": kind.value,
                    "changes": len({(row.source, row.name) for row in of_kind}),
                    "tasks": sum(row.task is not None for row in of_kind),
                    "certified": sum(row.status == "certified" for row in of_kind),
                    "rejected": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
                }
            )
    return found


def _select_rows(store: Store, sources: Sequence[str]) -> list[Row[Any]]:
    with store.read_transaction() as connection:
        return [row for row in connection.execute(_DERIVATIONS) if not sources or row.source in sources]


def _format_counts(words: Counter[str] | None) -> str | None:
    if words is None:
        return None
    return ", ".join(word if count == 1 else f"{word} {count}" for word, count in words.items())
