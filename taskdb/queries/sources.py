"""Queries on the sources of changes and the base commits of tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import bindparam, text

from taskdb.records import Candidate
from taskdb.schema.batches import execute_in_batches

if TYPE_CHECKING:
    from taskdb.store import Store

_KNOWN = text("SELECT 1 FROM change WHERE source = :source LIMIT 1")
_NAMED = text(
    "SELECT source, name, pull_request, candidate, reason FROM change_listing WHERE name IN :keys"
).bindparams(bindparam("keys", expanding=True))
_ALL_CHANGES = text("SELECT name, pull_request, candidate, reason FROM change_listing ORDER BY name, source, change")
_COMMITS = text("""
    SELECT repo, base_commit FROM task WHERE source = :source
    UNION SELECT repo, review_tree FROM task WHERE source = :source AND review_tree IS NOT NULL
    ORDER BY repo, base_commit""")

_NEWEST_CANDIDATES = text("""
    SELECT id FROM (SELECT id, repo, row_number() OVER (PARTITION BY repo ORDER BY created_at DESC, id) AS place
                    FROM candidate) ranked
    WHERE place <= :most ORDER BY repo, place""")


def find_newest_candidates(store: Store, most: int) -> list[Candidate]:
    """Return the newest candidates of each repository, at most so many of one, by repository and then newest first."""
    with store.read_transaction() as connection:
        keys = list(connection.execute(_NEWEST_CANDIDATES, {"most": most}).scalars())
    candidates = store.get_many(Candidate, keys)
    return [candidates[key] for key in keys]


class ListedChange(NamedTuple):
    """Records of a change (ids); `candidate` is None where the miner rejected it, for `reason`."""

    pull_request: str
    candidate: str | None
    reason: str | None


def find_changes(store: Store, source: str, names: Sequence[str]) -> dict[str, ListedChange]:
    """Return name -> change of a source, for those names that it has."""
    with store.read_transaction() as connection:
        rows = execute_in_batches(connection, _NAMED, names)
        return {
            row.name: ListedChange(row.pull_request, row.candidate, row.reason) for row in rows if row.source == source
        }


def iterate_newest_changes(store: Store) -> Iterator[ListedChange]:
    """Yield the changes of all sources, by name and source: the newest of each, and of several sources the first."""
    with store.read_transaction() as connection:
        rows = connection.execute(_ALL_CHANGES).all()
    names: set[str] = set()
    for row in rows:
        if row.name not in names:
            names.add(row.name)
            yield ListedChange(row.pull_request, row.candidate, row.reason)


def has_source(store: Store, source: str) -> bool:
    """Return whether a change of exactly this source word was mined."""
    with store.read_transaction() as connection:
        return connection.execute(_KNOWN, {"source": source}).first() is not None


def iterate_base_commits(store: Store, sources: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (source, `owner/name`, commit) of all base trees and trees of reviews of some sources, each once."""
    with store.read_transaction() as connection:
        for source in sources:
            for row in connection.execute(_COMMITS, {"source": source}):
                yield source, row.repo, row.base_commit
