"""Records that a task descends from, so that another database can hold the same task under the same id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import bindparam, text

from core.errors import InputError
from taskdb.records import Candidate, Certificate, Environment, PullRequest, Record, Rejection, Task, Verification
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.records.work import make_clone_wait
from taskdb.schema.batches import execute_in_batches

if TYPE_CHECKING:
    from taskdb.store import Store

R = TypeVar("R", bound=Record)

LINEAGE_RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (PullRequest, Tags, Candidate, Environment, Verification, Verdict, Task, Certificate)
}
"""Name -> class of the records of a lineage, parents first."""

_VERDICTS = text("""SELECT parent, id FROM verdict WHERE parent IN :keys ORDER BY seq""").bindparams(
    bindparam("keys", expanding=True)
)
_TAGS = text("""SELECT source, name, merge_commit, tagging FROM change
                WHERE name IN :keys AND tagging IS NOT NULL""").bindparams(bindparam("keys", expanding=True))
_CHANGE = text("SELECT result FROM change WHERE source = :source AND name = :name AND merge_commit = :merge_commit")


def load_lineages(store: Store, tasks: Sequence[Task]) -> dict[str, list[Record]]:
    """Return id of a task -> the records that it descends from, parents first, without the task itself.

    Raises:
        InputError: a record is missing.
    """
    candidates = _get_all(store, Candidate, [task.candidate for task in tasks])
    pulls = _get_all(store, PullRequest, [candidate.parent for candidate in candidates.values()])
    parents = [task.parent for task in tasks if task.parent != task.candidate]
    environments = store.get_many(Environment, sorted(set(parents)))
    verifications = _get_all(store, Verification, [key for key in parents if key not in environments])
    environments |= _get_all(store, Environment, [verification.parent for verification in verifications.values()])
    with store.read_transaction() as connection:
        rows = execute_in_batches(connection, _TAGS, sorted({pull.name for pull in pulls.values()}))
        tagged = {(row.source, row.name, row.merge_commit): row.tagging for row in rows}
        judged = {row.parent: row.id for row in execute_in_batches(connection, _VERDICTS, sorted(verifications))}
    verdicts = _get_all(store, Verdict, list(judged.values()))
    tags = _get_all(store, Tags, [tagged[key] for pull in pulls.values() if (key := _build_key(pull)) in tagged])

    def collect(task: Task) -> Iterator[Record]:
        candidate = candidates[task.candidate]
        pull = pulls[candidate.parent]
        yield pull
        if (key := _build_key(pull)) in tagged:
            yield tags[tagged[key]]
        yield candidate
        if task.parent in environments:
            yield environments[task.parent]
        elif verification := verifications.get(task.parent):
            yield from (environments[verification.parent], verification)
            if verification.id in judged:
                yield verdicts[judged[verification.id]]

    return {task.id: list(collect(task)) for task in tasks}


def _get_all(store: Store, kind: type[R], keys: Sequence[str]) -> dict[str, R]:
    """Return records by id; raise InputError when a record is missing."""
    wanted = sorted(set(keys))
    records = store.get_many(kind, wanted)
    if missing := [key for key in wanted if key not in records]:
        raise InputError(f"there is no {kind.__name__} {missing[0][:12]}")
    return records


def add_lineage(store: Store, records: Mapping[str, Record]) -> int:
    """Add the lineages of some tasks; return how many records are new.

    A change that the database has already keeps its own newest lineage.

    Args:
        store: the database.
        records: id -> record, complete lineages.
    """
    pulls = {key: record for key, record in records.items() if isinstance(record, PullRequest)}
    candidates = [record for record in records.values() if isinstance(record, Candidate)]
    tags = [record for record in records.values() if isinstance(record, Tags)]
    imported = {
        task.candidate for task in records.values() if isinstance(task, Task) and task.environment == "imported"
    }
    new: list[tuple[PullRequest, Candidate | Rejection, float]] = [
        (pull, make_clone_wait(pull) if candidate.id in imported else candidate, 0.0)
        for candidate in candidates
        if not _has_change(store, pull := pulls[candidate.parent])
    ]
    known = {pull.id for pull, _, _ in new}
    n_new = 2 * len(store.add_mined_changes(*new, tags=[tag for tag in tags if tag.parent in known]))
    return n_new + len(store.add(*records.values()))


def _has_change(store: Store, pull: PullRequest) -> bool:
    key = dict(zip(("source", "name", "merge_commit"), _build_key(pull), strict=True))
    with store.read_transaction() as connection:
        return connection.execute(_CHANGE, key).first() is not None


def _build_key(pull: PullRequest) -> tuple[str, str, str]:
    return pull.source, pull.name, pull.merge_commit
