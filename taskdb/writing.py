"""Writing of records, changes and events with all that follows from them, in a transaction of the caller."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, bindparam, insert, select, text, update
from sqlalchemy.dialects import sqlite

from taskdb import listing
from taskdb.counts import Deltas
from taskdb.records import (
    Candidate,
    Certificate,
    Environment,
    PullRequest,
    Record,
    Rejection,
    Score,
    Stage,
    Task,
    Verification,
)
from taskdb.records.audits import Audit
from taskdb.records.rollouts import Rollout
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.records.work import StageResult
from taskdb.schema import search, tables
from taskdb.schema.batches import execute_in_batches
from taskdb.schema.mapping import RECORD_TABLES, build_finding_rows, build_rows, build_tag_rows, clean_value, get_table
from taskdb.schema.record_tables import find_change
from taskdb.schema.stored_records import ListBatch, compress_body, store_lists

Clock = Callable[[], str]
MinedChange = tuple[PullRequest, Candidate | Rejection, float]
"""Change, the result that mining made of it, and seconds."""


def add_records(connection: Connection, records: Sequence[Record], clock: Clock) -> list[Record]:
    """Add records, parents first, and bring the listings up to date; return those that are new."""
    added = _insert_records(connection, records, clock)
    _refresh_listings(connection, added)
    return added


def add_stage_results(connection: Connection, finished: Sequence[StageResult], clock: Clock) -> list[StageResult]:
    """Add results of stages and their events; return those that are new."""
    added = _insert_records(connection, [f.result for f in finished], clock)
    new = {record.id for record in added}
    # A record that was there has its event already; a second one would count its seconds twice.
    fresh = [f for f in finished if f.result.id in new]
    _refresh_listings(connection, added, _insert_events(connection, fresh, clock))
    return fresh


def add_mined_changes(
    connection: Connection,
    pairs: Sequence[MinedChange],
    tags: Sequence[Tags],
    sketches: Mapping[str, Sequence[int]],
    clock: Clock,
) -> list[StageResult]:
    """Add mined changes; return the new results. Arguments as in `Store.add_mined_changes`."""
    finished = [
        StageResult(stage=Stage.MINE, result=result, source=pull.source, name=pull.name, seconds=seconds, parent=pull)
        for pull, result, seconds in pairs
    ]
    # In the order of the data path, as each record refers to those before it.
    _insert_records(connection, [pull for pull, _, _ in pairs], clock)
    new = {record.id for record in _insert_records(connection, tags, clock)}
    if rows := [row for record in tags if record.id in new for row in build_tag_rows(record)]:
        connection.execute(insert(get_table(tables.TagRow)), rows)
    _insert_records(connection, [result for _, result, _ in pairs], clock)
    touched, changed = _update_changes(connection, pairs, {kinds.parent: kinds.id for kinds in tags})
    _insert_sketches(connection, pairs, sketches)
    fresh = [f for f in finished if f.result.id in changed]
    deltas = _insert_events(connection, fresh, clock)
    listing.refresh(connection, listing.find_affected_changes(connection, touched), deltas)
    return fresh


def add_score(connection: Connection, score: Score, task: str, submission: str, at: str) -> str:
    """Add the score of a submission; return the row's id. `task`: id; `submission`: sha256 of its patch."""
    body = score.model_dump_json()
    key = hashlib.sha256(f"{task} {submission} {body}".encode()).hexdigest()
    row = {
        "id": key,
        "body": compress_body(body.encode()),
        "added_at": at,
        "task": task,
        "submission": submission,
        "value": score.value,
        "resolved": score.resolved,
    }
    insert_new(connection, get_table(tables.ScoreRow), [row], "id")
    return key


def _insert_records(connection: Connection, records: Sequence[Record], clock: Clock) -> list[Record]:
    added, lists = list[Record](), ListBatch()
    # In the order of the data path, as a record refers to its parents.
    for kind, (row, _) in RECORD_TABLES.items():
        of_kind = {record.id: record for record in records if type(record) is kind}
        if not of_kind:
            continue
        table = get_table(row)
        # An insert that leaves a known record out still takes a number of the sequence.
        known = _select_known_ids(connection, table, list(of_kind))
        if missing := [record for key, record in sorted(of_kind.items()) if key not in known]:
            inserted = insert_new(connection, table, build_rows(kind, missing, clock(), lists), "id")
            new = [record for record in missing if (record.id,) in inserted]
        else:
            new = []
        search.index_tasks(connection, new)
        # A finding has no id by which it could be recognised, so only those of new verdicts are added.
        if rows := [row for record in new if isinstance(record, Verdict) for row in build_finding_rows(record)]:
            connection.execute(insert(get_table(tables.FindingRow)), rows)
        added += new
    # Once for all classes, as equal lists of different records are stored a single time.
    store_lists(connection, lists)
    return added


def _refresh_listings(connection: Connection, records: Sequence[Record], deltas: Deltas | None = None) -> None:
    """Bring the listings up to date for the changes of some new records."""
    if records:
        results = _find_results(connection, records)
        listing.refresh(connection, listing.find_affected_changes(connection, results), deltas)


def _update_changes(
    connection: Connection,
    pairs: Sequence[MinedChange],
    tags: Mapping[str, str],
) -> tuple[set[str], set[str]]:
    """Set each change's reference to its newest lineage.

    Return the ids of the results of all updated changes, and of those that are newly referenced.

    `tags`: id of a pull request -> id of its tags.
    """
    table = get_table(tables.ChangeRow)
    key_columns, points = ("source", "name", "merge_commit"), ("pull_request", "result", "tagging")
    wanted = {
        (pull.source, pull.name, pull.merge_commit): (pull.id, result.id, tags.get(pull.id))
        for pull, result, _ in pairs
    }
    rows = [dict(zip(key_columns + points, key + now, strict=True)) for key, now in sorted(wanted.items())]
    names = sorted({name for _, name, _ in wanted})
    query = select(table).where(table.c.name.in_(bindparam("keys", expanding=True))).order_by(table.c.seq)
    there = {(row.source, row.name, row.merge_commit) for row in execute_in_batches(connection, query, names)}
    # Most changes of a second run are there, and an insert that conflicts still takes a number of the sequence.
    missing = [row for row in rows if tuple(row[column] for column in key_columns) not in there]
    inserted = insert_new(connection, table, missing, *key_columns) if missing else set()
    touched = {wanted[key][1] for key in inserted}
    changed = set(touched)
    # Locked in the order of their numbers, see `Store.write_transaction`.
    for row in execute_in_batches(connection, query.with_for_update(key_share=True), names):
        key = (row.source, row.name, row.merge_commit)
        if key in inserted or key not in wanted:
            continue
        before, now = tuple(getattr(row, point) for point in points), wanted[key]
        if before != now:
            values = dict(zip(points, now, strict=True))
            connection.execute(update(table).where(table.c.seq == row.seq).values(values))
            touched.add(now[1])
            changed |= {now[1]} if before[1] != now[1] else set()
    return touched, changed


def _insert_sketches(
    connection: Connection,
    pairs: Sequence[MinedChange],
    sketches: Mapping[str, Sequence[int]],
) -> None:
    """Add the similarity keys of candidates that are missing."""
    table = get_table(tables.SketchRow)
    for pull, result, _ in pairs:
        if keys := sketches.get(result.id):
            seq = find_change(connection, pull)
            here = table.c.key.in_(bindparam("keys", expanding=True)) & (table.c.change == seq)
            known = set(connection.execute(select(table.c.key).where(here), {"keys": list(keys)}).scalars())
            if rows := [{"key": key, "change": seq} for key in sorted(set(keys) - known)]:
                insert_new(connection, table, rows, "key", "change")


def _insert_events(connection: Connection, finished: Sequence[StageResult], clock: Clock) -> Deltas:
    """Add the events of stages; return the amounts that they add to the counters."""
    deltas = Deltas()
    for f in finished:
        deltas.count_seconds(f.source, f.stage, f.seconds)
    rows = [
        {
            "stage": f.stage.value,
            "name": f.name,
            "source": f.source,
            "record": f.result.id,
            "parent": f.parent.id if f.parent else getattr(f.result, "parent", None),
            "ok": f.ok,
            "reason": f.reason,
            "detail": clean_value(getattr(f.result, "detail", "")),
            "seconds": f.seconds,
            "kind": f.kind,
            "at": clock(),
        }
        for f in finished
    ]
    if rows:
        connection.execute(insert(get_table(tables.EventRow)), rows)
    return deltas


def insert_new(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, object]], *key: str
) -> set[tuple[Any, ...]]:
    """Insert the rows whose key is not in a table yet; return the keys of those.

    Of equal rows of two writers the second is left out: it waits for the end of the first writer's transaction.
    Rows are sorted by key, so that two writers never wait for each other.
    """
    make: Any = sqlite.insert
    if connection.dialect.name == "postgresql":
        # Loaded only where it is needed, as it is slow to import.
        from sqlalchemy.dialects.postgresql import insert as make  # noqa: PLC0415
    columns = [table.c[name] for name in key]
    statement = make(table).on_conflict_do_nothing(index_elements=columns).returning(*columns)
    return {tuple(row) for row in connection.execute(statement, list(rows))}


def _find_results(connection: Connection, records: Sequence[Record]) -> set[str]:
    """Return the candidates (ids) of the records' lineages, and the records that may be a change's result.

    A rejection's parent is a record of any kind.
    """
    results, parents, tasks = set[str](), set[str](), set[str]()
    imported = sorted({task.name for task in records if isinstance(task, Task) and task.environment == "imported"})
    results |= {row.result for row in execute_in_batches(connection, _RESULTS_OF_NAMES, imported)}
    for record in records:
        if isinstance(record, (Candidate, Rejection)):
            results.add(record.id)
        if isinstance(record, Environment):
            results.add(record.parent)
        elif isinstance(record, (Verification, Verdict, Task)):
            results.add(record.candidate)
        elif isinstance(record, (Certificate, Audit, Rollout)):
            tasks.add(record.parent)
        elif isinstance(record, Rejection):
            parents.add(record.parent)
    for query in _CANDIDATES_OF:
        keys = parents | tasks if query is _CANDIDATES_OF[-1] else parents
        results |= {row.candidate for row in execute_in_batches(connection, query, sorted(keys))}
    return results


_RESULTS_OF_NAMES = text("SELECT result FROM change WHERE name IN :keys").bindparams(bindparam("keys", expanding=True))
# Names of tables and columns cannot be bound parameters; these are constants.
_CANDIDATES_OF = tuple(
    text(f"SELECT {column} AS candidate FROM {name} WHERE id IN :keys").bindparams(  # noqa: S608
        bindparam("keys", expanding=True)
    )
    for name, column in (
        ("candidate", "id"),
        ("environment", "parent"),
        ("verification", "candidate"),
        ("verdict", "candidate"),
        ("task", "candidate"),
    )
)


def _select_known_ids(connection: Connection, table: Table, keys: Sequence[str]) -> set[str]:
    query = select(table.c.id).where(table.c.id.in_(bindparam("keys", expanding=True)))
    return {row.id for row in execute_in_batches(connection, query, keys)}
