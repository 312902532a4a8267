"""Tasks by the names that people call them.

Ids, beginnings of ids and names, many at once, and the changes they come from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, column, func, or_, select, table

from taskdb.queries.task_filters import TASKS
from taskdb.records import Candidate, Kind, PullRequest, Task
from taskdb.records.work import ID_LENGTH, is_id_beginning
from taskdb.schema.batches import split_batches
from taskdb.schema.word_lists import select_words
from taskdb.store import Store

_CHANGES = table("changes", column("candidate"), column("number"), column("name"))
_BATCH = 10_000
_KINDS_OF_SEVERAL = (Kind.COMBINED, Kind.MIRRORED)
"""Kinds of tasks that are made of further changes besides their own."""


class TaskOrigin(NamedTuple):
    """Task and the names that a benchmark list may name of its change."""

    id: str
    repo: str
    number: int | None
    base_commit: str
    change: str
    """Name of the change."""


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
    """Yield the current tasks of repositories (`owner/name`, in lower case) with their changes.

    A task of several changes, or one that mirrors another project's change, has a row for each of them.
    """
    wanted = sorted(repos)
    yield from _list_own_origins(store, wanted)
    yield from _list_further_origins(store, set(wanted))


def _list_further_origins(store: Store, repos: Collection[str]) -> Iterator[TaskOrigin]:
    """Yield the tasks that are made of further changes of some repositories, with these changes."""
    query = select(TASKS.c.id).where(TASKS.c.kind.in_([kind.value for kind in _KINDS_OF_SEVERAL]))
    with store.read_transaction() as connection:
        keys = list(connection.execute(query).scalars())
    for part in split_batches(keys, _BATCH):
        tasks = store.get_many(Task, part)
        others = {task.id: task.family - {task.candidate} for task in tasks.values()}
        candidates = store.get_many(Candidate, sorted({key for family in others.values() for key in family}))
        pulls = store.get_many(PullRequest, sorted({candidate.parent for candidate in candidates.values()}))
        for key, family in others.items():
            for candidate in (candidates[other] for other in sorted(family) if other in candidates):
                if candidate.repo.lower() in repos:
                    number = pulls[candidate.parent].number
                    yield TaskOrigin(key, candidate.repo, number, candidate.base_commit, candidate.name)


def _list_own_origins(store: Store, repos: Sequence[str]) -> Iterator[TaskOrigin]:
    query: Any = select(TASKS.c.id, TASKS.c.repo, _CHANGES.c.number, TASKS.c.base_commit, _CHANGES.c.name)
    query = query.select_from(TASKS.join(_CHANGES, _CHANGES.c.candidate == TASKS.c.candidate))
    query = query.where(func.lower(TASKS.c.repo).in_(select_words(repos)))
    with store.read_transaction() as connection:
        for row in connection.execution_options(yield_per=_BATCH).execute(query):
            yield TaskOrigin(*row)
