"""Imported rows as tasks: listed, searched and exported as they were published, before anything of them is run.

A row whose repository has a clone was mined before, and its task belongs to the candidate that this made. Any other row
waits: the miner's result for its change is the reason `awaits-clone`, until a run of its source has a clone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError
from miner.instances import InstanceRow, build_pull_request, build_unread_candidate, read_instance_rows
from taskdb.queries.sources import ListedChange, find_changes
from taskdb.records import Candidate, FailureKind, Kind, PullRequest, Record, Task
from taskdb.records.work import AWAITS_CLONE, make_clone_wait

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.store import Store

BATCH = 500
"""Rows that are stored in a transaction."""


def store_published_tasks(
    store: Store, imports: Path, names: Collection[str], services: Services, *, source: str
) -> Counter[str]:
    """Store the tasks of imported rows; return repository -> rows that wait for a clone of it.

    Args:
        store: the database.
        imports: the file of all imported rows.
        names: the rows to store.
        services: services that provide the artifacts.
        source: the source word of the file.

    Raises:
        Transient: the disk is full, or the database cannot be written.
    """
    waiting = Counter[str]()
    wanted = frozenset(names)
    rows = (row for _, row in read_instance_rows(imports) if not isinstance(row, InputError))
    chosen = (row for row in rows if row.instance_id in wanted)
    while batch := list(islice(chosen, BATCH)):
        waiting.update(_store_batch(store, batch, services, source))
    return waiting


def _store_batch(store: Store, rows: list[InstanceRow], services: Services, source: str) -> Iterator[str]:
    """Store some rows; yield the repository of each that waits."""
    known = find_changes(store, source, [row.instance_id for row in rows])
    candidates = store.get_many(Candidate, [change.candidate for change in known.values() if change.candidate])
    pulls = store.get_many(PullRequest, [change.pull_request for change in known.values()])
    records, new = list[Record](), list[PullRequest]()
    for row in rows:
        change = known.get(row.instance_id)
        candidate = _get_candidate(change, candidates)
        if candidate is None:
            pull = pulls[change.pull_request] if change else _build_pull_request(row, source, services)
            candidate = build_unread_candidate(row, pull, services)
            records += [pull, candidate]
            new += [] if change else [pull]
        records.append(_build_task(row, candidate))
        if change is None or change.reason == AWAITS_CLONE:
            yield row.repo
    store.add(*records)
    # A change with any other result is listed again by what was added.
    store.add_mined_changes(*((pull, make_clone_wait(pull), 0.0) for pull in new))


def _get_candidate(change: ListedChange | None, candidates: dict[str, Candidate]) -> Candidate | None:
    return candidates[change.candidate] if change and change.candidate else None


def _build_pull_request(row: InstanceRow, source: str, services: Services) -> PullRequest:
    return build_pull_request(row, source, "" if row.created_at is None else row.created_date, services)


def _build_task(row: InstanceRow, candidate: Candidate) -> Task:
    return Task(
        parent=candidate.id,
        candidate=candidate.id,
        source=candidate.source,
        name=candidate.name,
        kind=Kind.BUGFIX,
        repo=candidate.repo,
        language=candidate.language,
        language_version="",
        version=candidate.version,
        base_commit=candidate.base_commit,
        created_at=candidate.created_at,
        license=candidate.license,
        problem_statement=row.problem_statement,
        hints=candidate.hints,
        gold_patch=candidate.gold_patch,
        test_patch=candidate.test_patch,
        control_patch=None,
        FAIL_TO_PASS=tuple((test, FailureKind.UNKNOWN) for test in row.FAIL_TO_PASS),
        PASS_TO_PASS=row.PASS_TO_PASS,
        controls=(),
        eval_script=None,
        plan=None,
        image="",
        image_digest="",
        test_seconds=0.0,
        environment="imported",
    )
