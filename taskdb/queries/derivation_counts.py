"""Yields: tasks and rejections per change and kind, and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Select, func, select

from taskdb import counts
from taskdb.records import Kind
from taskdb.schema.batches import fetch_tuples
from taskdb.schema.columns import DERIVATION_LISTING as _LISTED
from taskdb.schema.word_lists import match_words
from taskdb.store import Store


def count_by_change(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each change with tasks or rejected kinds, newest first: `change`, and a value for each kind.

    The value is None for a kind that is still open, `derived` or `certified` with the number of tasks (`certified 3`),
    or the reason of the rejection.
    """
    changes: list[dict[str, Any]] = []
    with store.read_transaction() as connection:
        rows = fetch_tuples(connection, _select_rows(sources))
        for name, rows_of_name in groupby(rows, key=itemgetter(1)):  # of several sources, where two use one name
            cells: dict[str, dict[str, Counter[str]]] = {}
            for source, _, kind, word in rows_of_name:
                cells.setdefault(source, {}).setdefault(kind, Counter())[word] += 1
            changes += ({"change": name, **_NO_KINDS, **_write_cells(kinds)} for kinds in cells.values())
    return changes


def _write_cells(kinds: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return kind -> its words, each with its number where it stands there several times."""
    return {
        kind: ", ".join(word if n == 1 else f"{word} {n}" for word, n in words.items()) for kind, words in kinds.items()
    }


_NO_KINDS = {kind.value: None for kind in Kind}


def count_by_kind(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each kind that was derived or rejected: `kind`, `changes`, `tasks`, `certified`, `rejected`."""
    with store.read_transaction() as connection:
        rows = counts.read_funnel(connection, "kind", sources)
    counted = []
    for kind in Kind:
        words, reasons = Counter[str](), Counter[str]()
        for row in rows:
            if row.value == kind:
                words[row.outputs] += row.n
                reasons.update({row.reason: row.n} if row.reason else {})
        if words:
            counted.append(
                {
                    "kind": kind.value,
                    "changes": words["change"],
                    "tasks": words["task"],
                    "certified": words["certified"],
                    "rejected": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
                }
            )
    return counted


def _select_rows(sources: Sequence[str]) -> Select[Any]:
    word = func.coalesce(_LISTED.c.reason, _LISTED.c.status)
    query = select(_LISTED.c.source, _LISTED.c.name, _LISTED.c.kind, word).order_by(
        _LISTED.c.merged_at.desc(), _LISTED.c.name, _LISTED.c.kind, _LISTED.c.task_name
    )
    return query.where(match_words(_LISTED.c.source, sources)) if sources else query
