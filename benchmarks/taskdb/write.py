"""Writing generated changes: in bulk by the project's own mapping, or one by one through the store.

Both give the same rows. In bulk, workers build the rows of whole repositories and this process copies them into the
tables; the listings are then rebuilt as a migration does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from enum import Enum
from itertools import count, groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from backends.base_trees import BaseTreeStore
from benchmarks.taskdb.generate import (
    PATCH_PATHS,
    PATCHES,
    REVIEW_FILES,
    GeneratedChange,
    generate_repository,
    make_patch,
    plan_repositories,
)
from benchmarks.taskdb.trees import write_base_trees
from taskdb import listing
from taskdb.artifacts import Artifacts
from taskdb.records import Stage
from taskdb.records.base import Record
from taskdb.records.verdicts import Verdict
from taskdb.records.work import StageResult
from taskdb.schema.mapping import RECORD_TABLES, build_finding_rows, build_rows, build_tag_rows, clean_value
from taskdb.schema.stored_records import ListBatch, store_lists
from taskdb.store import Store

CLOCK = "2026-01-01T00:00:00+00:00"
TableRows = dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]]
"""Table -> names of columns, and rows."""
_INDICES = {
    "sqlite": """SELECT name, sql AS definition FROM sqlite_master
                 WHERE type = 'index' AND sql > '' AND tbl_name <> :lists""",
    "postgresql": """SELECT i.indexname AS name, i.indexdef AS definition FROM pg_indexes i
                     WHERE i.schemaname = 'public' AND i.tablename <> :lists
                       AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conname = i.indexname)""",
}
"""Kind of a database -> query for the indices that are no constraints, without those of lists of tests."""
SKETCHES = "sketch"
LISTS = "test_list"


def write_database(url: str, n_tasks: int, *, workers: int = 2) -> None:
    """Fill an empty database with about so many tasks."""
    changes = count(1)
    with Store.open(url) as store:
        with store.engine.connect() as connection:
            _relax(connection)
            with connection.begin():
                restoring = set_indices_aside(connection)
            for rows in _build_repositories(plan_repositories(n_tasks), workers):
                with connection.begin():
                    _write_repository(connection, rows, changes)
            with connection.begin():
                for statement in restoring:
                    connection.execute(text(statement))
        with store.write_transaction() as connection:
            listing.rebuild(connection)
            if connection.dialect.name == "postgresql":  # which collects statistics by itself after a while
                connection.execute(text("ANALYZE"))


def set_indices_aside(connection: Connection) -> list[str]:
    """Drop all indices that are no constraints; return the statements that make them again.

    Ids are random, so indices that are made at the end cost a fraction. Those of lists of tests stay, because writing a
    list looks for a base.
    """
    indices = connection.execute(text(_INDICES[connection.dialect.name]), {"lists": LISTS}).all()
    for index in indices:
        connection.execute(text(f'DROP INDEX "{index.name}"'))
    return [index.definition for index in indices]


def write_artifacts(folder: Path) -> None:
    """Write the artifacts that generated records name."""
    artifacts = Artifacts(folder)
    for number in range(PATCHES):
        artifacts.put(make_patch(number))
    artifacts.put_text(REVIEW_FILES)


def write_trees(store: Store, trees: BaseTreeStore) -> None:
    """Keep the base trees of all tasks of a generated database."""
    with store.read_transaction() as connection:
        rows = connection.execute(text("SELECT DISTINCT repo, change_name FROM task_listing ORDER BY repo"))
        for repo, changes in groupby(rows, lambda row: row.repo):
            numbers = sorted(int(row.change_name.rpartition("-")[2]) for row in changes)
            write_base_trees(trees, repo, numbers, PATCH_PATHS)


def write_through_store(store: Store, change: GeneratedChange) -> None:
    """Write one change as the pipeline does, stage after stage."""
    sketches = {change.mined.id: change.sketch} if change.sketch else {}
    store.add_mined_changes((change.pull_request, change.mined, 0.1), tags=[change.tags], sketches=sketches)
    for result in change.results:
        store.add_stage_results(result)


def build_table_rows(changes: Sequence[GeneratedChange]) -> TableRows:
    """Return the rows of some changes for every table but the listings, in the order in which a store writes them.

    The rows of `sketch` have the position of the change among `changes` in place of its sequence number; those of LISTS
    are hash, repository and JSON of lists of tests.
    """
    records = [
        record
        for change in changes
        for record in (change.pull_request, change.tags, change.mined, *(done.result for done in change.results))
    ]
    table_rows: dict[str, list[dict[str, Any]]] = {}
    lists = ListBatch()
    for kind, (row, _) in RECORD_TABLES.items():
        if of_kind := [record for record in records if type(record) is kind]:
            table_rows[str(row.__tablename__)] = build_rows(kind, of_kind, CLOCK, lists)
    table_rows["tag"] = [row for change in changes for row in build_tag_rows(change.tags)]
    table_rows["finding"] = [
        row for record in records if isinstance(record, Verdict) for row in build_finding_rows(record)
    ]
    table_rows["change"] = [_build_change_row(change) for change in changes]
    table_rows["event"] = [row for change in changes for row in _build_event_rows(change)]
    table_rows["sketch"] = [
        {"key": key, "change": at} for at, change in enumerate(changes) for key in sorted(change.sketch)
    ]
    contents = [(key, repo, content) for key, (repo, content) in lists.lists.items()]
    return {table: _flatten(rows) for table, rows in table_rows.items() if rows} | {
        LISTS: (("id", "repo", "json"), contents)
    }


def _relax(connection: Connection) -> None:
    """Leave out what a file needs that must survive a crash; parents are written before their children."""
    if connection.dialect.name == "sqlite":
        for pragma in ("synchronous=OFF", "foreign_keys=OFF", "cache_size=-500000"):
            connection.connection.driver_connection.execute(f"PRAGMA {pragma}")  # type: ignore[union-attr]


def _write_repository(connection: Connection, rows: TableRows, changes: Iterator[int]) -> None:
    """Write the rows of a repository; `changes` yields sequence numbers."""
    for table, (columns, values) in rows.items():
        if table not in (SKETCHES, LISTS):
            _write_rows(connection, table, columns, values)
    numbers = [next(changes) for _ in rows["change"][1]]
    if SKETCHES in rows:
        columns, values = rows[SKETCHES]
        _write_rows(connection, SKETCHES, columns, sorted((key, numbers[at]) for key, at in values))
    store_lists(connection, ListBatch({key: (repo, content) for key, repo, content in rows[LISTS][1]}))


def _write_rows(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Append rows to a table by the fastest way of the driver."""
    driver: Any = connection.connection.driver_connection
    names = ", ".join(columns)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(columns))
        driver.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', rows)  # noqa: S608 - own tables
        return
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table}" ({names}) FROM STDIN'.encode()) as copy:
        for row in rows:
            copy.write_row(row)


def _build_repositories(plan: Sequence[int], workers: int) -> Iterator[TableRows]:
    """Yield the rows of each repository in order; few are built ahead."""
    waiting: deque[Future[TableRows]] = deque()
    with ProcessPoolExecutor(workers) as pool:
        for index, number in enumerate(plan):
            waiting.append(pool.submit(_build_repository, index, number))
            if len(waiting) > workers + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _build_repository(index: int, n_verified: int) -> TableRows:
    return build_table_rows(list(generate_repository(index, n_verified)))


def _build_change_row(change: GeneratedChange) -> dict[str, Any]:
    pull = change.pull_request
    return {
        "source": pull.source,
        "name": pull.name,
        "merge_commit": pull.merge_commit,
        "pull_request": pull.id,
        "result": change.mined.id,
        "tagging": change.tags.id,
    }


def _build_event_rows(change: GeneratedChange) -> list[dict[str, Any]]:
    pull = change.pull_request
    mined = StageResult(
        stage=Stage.MINE, result=change.mined, source=pull.source, name=pull.name, seconds=0.1, parent=pull
    )
    return [
        {
            "stage": done.stage.value,
            "name": done.name,
            "source": done.source,
            "record": done.result.id,
            "parent": done.parent.id if done.parent else _get_parent(done.result),
            "ok": done.ok,
            "reason": done.reason,
            "detail": clean_value(getattr(done.result, "detail", "")),
            "seconds": done.seconds,
            "kind": done.kind,
            "at": CLOCK,
        }
        for done in (mined, *change.results)
    ]


def _get_parent(record: Record) -> str:
    parent: str = getattr(record, "parent")  # noqa: B009 - every result of a stage has one
    return parent


def _flatten(rows: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    columns = tuple(rows[0])
    return columns, [tuple(_simplify(row[name]) for name in columns) for row in rows]


def _simplify(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
