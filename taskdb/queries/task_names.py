"""Tasks by the names that people call them.

Ids, beginnings of ids and names, many at once, and the changes they come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, column, func, or_, select, table

from taskdb.queries.task_filters import TASKS
from taskdb.records.work import ID_LENGTH, is_id_beginning
from taskdb.schema.word_lists import select_words
from taskdb.store import Store

_CHANGES = table("changes", column("candidate"), column("number"))
_BATCH = 10_000


class TaskOrigin(NamedTuple):
    """Task and the names that a benchmark list may name of its change."""

    id: str
    repo: str
    number: int | None
    base_commit: str


def resolve_names(store: Store, words: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the ids of the current tasks that words name, and the words that name none.

    A word is an id, an unambiguous prefix of an id, or a name; it names all tasks that share it, of several sources.
    """
    resolved: dict[str, list[str]] = {}
    problems = []
    with store.read_transaction() as connection:
        for start in range(0, len(words), _BATCH):
            wanted = select_words(words[start : start + _BATCH])
            query = select(TASKS.c.id, TASKS.c.name).where(or_(TASKS.c.id.in_(wanted), TASKS.c.name.in_(wanted)))
            for row in connection.execute(query):
                resolved.setdefault(row.id, []).append(row.id)
                resolved.setdefault(row.name, []).append(row.id)
        ids: dict[str, None] = {}
        for word in words:
            matches = resolved.get(word) or _find_beginning(connection, word)
            if not matches or (word not in resolved and len(matches) > 1):
                problems.append(f"{word} ({'no task' if not matches else 'ambiguous'})")
            else:
                ids |= dict.fromkeys(matches)
    return tuple(ids), problems


def _find_beginning(connection: Connection, word: str) -> list[str]:
    # A whole id would have been found.
    if not is_id_beginning(word) or len(word) == ID_LENGTH:
        return []
    query = select(TASKS.c.id).where(TASKS.c.id >= word, TASKS.c.id < f"{word}g").limit(2)
    return list(connection.execute(query).scalars())


def list_origins(store: Store, repos: Iterable[str]) -> Iterator[TaskOrigin]:
    """Yield the current tasks of repositories (`owner/name`, in lower case) with their changes."""
    query: Any = select(TASKS.c.id, TASKS.c.repo, _CHANGES.c.number, TASKS.c.base_commit)
    query = query.select_from(TASKS.join(_CHANGES, _CHANGES.c.candidate == TASKS.c.candidate))
    query = query.where(func.lower(TASKS.c.repo).in_(select_words(sorted(repos))))
    with store.read_transaction() as connection:
        for row in connection.execution_options(yield_per=_BATCH).execute(query):
            yield TaskOrigin(*row)
