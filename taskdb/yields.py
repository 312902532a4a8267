"""What became of the kinds of tasks: change by change, and how many of each in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text

from taskdb.kinds import NEEDS
from taskdb.store import Store

_DERIVATIONS = text("""SELECT source, name, kind, status, reason, task FROM derivations
                       ORDER BY merged_at DESC, name, kind, task_name""")


def by_change(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for each change of which some kind was asked, newest first: `change`, and a word for each kind.

    The word is null where it was not asked, `derived` or `certified` with their number (`certified 3`), or the reason
    why there is none.
    """
    found: dict[tuple[str, str], dict[str, Counter[str]]] = {}
    for row in _rows(store, sources):
        kinds = found.setdefault((row.source, row.name), {})
        kinds.setdefault(row.kind, Counter())[row.reason or row.status] += 1
    return [
        {"change": name, **{kind.value: _told(kinds.get(kind.value)) for kind in NEEDS}}
        for (_, name), kinds in found.items()
    ]


def by_kind(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for each kind that was asked: `kind`, `changes`, `tasks`, `certified`, `rejected` by reason."""
    rows = _rows(store, sources)
    found = []
    for kind in NEEDS:
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


def _rows(store: Store, sources: Sequence[str]) -> list[Row[Any]]:
    with store.reading() as connection:
        return [row for row in connection.execute(_DERIVATIONS) if not sources or row.source in sources]


def _told(words: Counter[str] | None) -> str | None:
    if words is None:
        return None
    return ", ".join(word if count == 1 else f"{word} {count}" for word, count in words.items())
