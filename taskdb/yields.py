"""Yields: tasks and rejections per change and kind, and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select

from taskdb import counts
from taskdb.columns import DERIVATION_LISTING as _LISTED
from taskdb.records import Kind
from taskdb.store import Store


def count_by_change(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each change with tasks or rejected kinds, newest first: `change`, and a value for each kind.

    The value is None for a kind that is still open, `derived` or `certified` with the number of tasks (`certified 3`),
    or the reason of the rejection.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    repeated: dict[tuple[str, str, str], Counter[str]] = {}
    with store.read_transaction() as connection:
        for source, name, kind, status, reason in connection.execute(_select_rows(sources)):
            change = found.get((source, name))
            if change is None:
                change = found[source, name] = {"change": name, **_NO_KINDS}
            word = reason or status
            if change[kind] is None:
                change[kind] = word
            else:
                words = repeated.setdefault((source, name, kind), Counter([change[kind]]))
                words[word] += 1
    for (source, name, kind), words in repeated.items():
        found[source, name][kind] = ", ".join(word if n == 1 else f"{word} {n}" for word, n in words.items())
    return list(found.values())


_NO_KINDS = {kind.value: None for kind in Kind}


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


def _select_rows(sources: Sequence[str]) -> Select[Any]:
    columns = (_LISTED.c[name] for name in ("source", "name", "kind", "status", "reason"))
    query = select(*columns).order_by(_LISTED.c.merged_at.desc(), _LISTED.c.name, _LISTED.c.kind, _LISTED.c.task_name)
    return query.where(_LISTED.c.source.in_(sources)) if sources else query
