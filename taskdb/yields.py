"""Yields: tasks and rejections per change and kind, and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Row, select

from taskdb import counts
from taskdb.columns import DERIVATION_LISTING as _LISTED
from taskdb.records import Kind
from taskdb.store import Store


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
    with store.read_transaction() as connection:
        rows = counts.read_funnel(connection, "kind", sources)
    found = []
    for kind in Kind:
        words, reasons = Counter[str](), Counter[str]()
        for row in rows:
            if row.value == kind:
                words[row.outputs] += row.n
                reasons.update({row.reason: row.n} if row.reason else {})
        if words:
            found.append(
                {
                    "kind": kind.value,
                    "changes": words["change"],
                    "tasks": words["task"],
                    "certified": words["certified"],
                    "rejected": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
                }
            )
    return found


def _select_rows(store: Store, sources: Sequence[str]) -> Iterator[Row[Any]]:
    columns = (_LISTED.c[name] for name in ("source", "name", "kind", "status", "reason"))
    query = select(*columns).order_by(_LISTED.c.merged_at.desc(), _LISTED.c.name, _LISTED.c.kind, _LISTED.c.task_name)
    if sources:
        query = query.where(_LISTED.c.source.in_(sources))
    with store.read_transaction() as connection:
        yield from connection.execution_options(yield_per=1000).execute(query)


def _format_counts(words: Counter[str] | None) -> str | None:
    if words is None:
        return None
    return ", ".join(word if count == 1 else f"{word} {count}" for word, count in words.items())
