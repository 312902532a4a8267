"""Records that a task descends from, so that another database can hold the same task under the same id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import TextClause, text

from taskdb.record_tables import build_change_key
from taskdb.records import Candidate, Certificate, Environment, PullRequest, Record, Task, Verification
from taskdb.tags import Tags
from taskdb.verdicts import Verdict

if TYPE_CHECKING:
    from taskdb.store import Store

CHAIN_RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (PullRequest, Tags, Candidate, Environment, Verification, Verdict, Task, Certificate)
}
"""Name -> class of the records of a chain, parents first."""

_VERDICT = text("SELECT id FROM verdict WHERE parent = :parent ORDER BY seq DESC LIMIT 1")
_TAGS = text("SELECT tagging FROM change WHERE source = :source AND name = :name AND merge_commit = :merge_commit")
_CHANGE = text("SELECT result FROM change WHERE source = :source AND name = :name AND merge_commit = :merge_commit")


def load_chain(store: Store, task: Task) -> list[Record]:
    """Return the records that a task descends from, parents first, without the task itself."""
    candidate = store.get(Candidate, task.candidate)
    pull = store.get(PullRequest, candidate.parent)
    found: list[Record] = [pull]
    if tags := _find_id(store, _TAGS, build_change_key(pull)):
        found.append(store.get(Tags, tags))
    found.append(candidate)
    if task.parent == candidate.id:
        return found
    verification = store.get(Verification, task.parent)
    found += [store.get(Environment, verification.parent), verification]
    if verdict := _find_id(store, _VERDICT, {"parent": verification.id}):
        found.append(store.get(Verdict, verdict))
    return found


def add_chain(store: Store, records: Mapping[str, Record]) -> int:
    """Add the chains of some tasks; return how many records are new.

    A change that the database has already keeps its own newest chain.

    Args:
        store: the database.
        records: id -> record, complete chains.
    """
    pulls = {key: record for key, record in records.items() if isinstance(record, PullRequest)}
    candidates = [record for record in records.values() if isinstance(record, Candidate)]
    tags = [record for record in records.values() if isinstance(record, Tags)]
    new = [(pulls[one.parent], one, 0.0) for one in candidates if not _has_change(store, pulls[one.parent])]
    known = {pull.id for pull, _, _ in new}
    n_new = 2 * len(store.add_mined_changes(*new, tags=[one for one in tags if one.parent in known]))
    return n_new + len(store.add(*records.values()))


def _has_change(store: Store, pull: PullRequest) -> bool:
    return _find_id(store, _CHANGE, build_change_key(pull)) is not None


def _find_id(store: Store, query: TextClause, key: Mapping[str, str]) -> str | None:
    with store.read_transaction() as connection:
        found = connection.execute(query, key).scalar()
    return str(found) if found is not None else None
