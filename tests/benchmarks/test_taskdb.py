"""The benchmark of the task database: its rows are those that a store writes, and its figures can come out bad."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from backends.base_trees import BaseTreeStore
from benchmarks.taskdb.__main__ import SizeReport
from benchmarks.taskdb.copying import copy_database
from benchmarks.taskdb.generate import generate_repository, plan_repositories
from benchmarks.taskdb.measure import Comparison, iter_rows, time_bundles, write_parquet
from benchmarks.taskdb.queries import NO_MATCH, list_queries, make_library_execute, open_driver
from benchmarks.taskdb.write import CLOCK, write_artifacts, write_database, write_through_store, write_trees
from exporters.task_table import write_task_table
from taskdb.artifacts import Artifacts
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.tasks import LIST_KEYS
from taskdb.records import Bundle, PullRequest, Rejection, Task
from taskdb.records.audits import Audit
from taskdb.records.images import ImageCopy
from taskdb.records.rollouts import Rollout, Trajectory, TrajectorySelection
from taskdb.records.simulator_measurements import SimulatorMeasurement
from taskdb.records.tags import Tags
from taskdb.schema import tables
from taskdb.schema.mapping import RECORD_TABLES
from taskdb.schema.record_tables import RECORDS_WITHOUT_CHANGE
from taskdb.store import Store
from tests.taskdb.conftest import (  # noqa: F401 - the databases of those tests
    PostgresServer,
    db,
    opened,
    postgresql,
    server,
)
from tests.taskdb.lineages import make_url

ROOT = Path(__file__).parents[2]
SIZE = 60
"""Tasks of a database: as many columns of as many tables vary as with 150."""
QUERIED_SIZE = 150
"""Tasks of a database of which each query finds some."""


ARBITRARY = {
    "derivation_listing": ("seq",),
    "change_listing": ("state",),
    "test_list": ("seq", "base", "content"),  # another list may be the base; the id is the hash of the whole list
}
"""Columns that depend on the way to a state."""
PASSING = ("meta", "change_state")
"""Tables with facts of the file, and with states that changes had on their way."""


def read_tables(url: str) -> dict[str, list[Any]]:
    """Table -> its rows in any order; sums of seconds are rounded."""
    contents: dict[str, list[Any]] = {}
    with Store.open(url) as store, store.read_transaction() as connection:
        for name, table in tables.METADATA.tables.items():
            columns = [column for column in table.columns if column.name not in ARBITRARY.get(name, ())]
            rows = connection.execute(table.select().with_only_columns(*columns))
            contents[name] = sorted(
                (tuple(round(value, 4) if isinstance(value, float) else value for value in row) for row in rows),
                key=repr,
            )
        is_sqlite = store.engine.dialect.name == "sqlite"
        query = "SELECT rowid FROM task_search" if is_sqlite else "SELECT task FROM task_search"
        contents["task_search"] = sorted(connection.exec_driver_sql(query).scalars())
    return {name: rows for name, rows in contents.items() if name not in PASSING}


def test_bulk_rows_are_those_of_a_store(db: str, tmp_path: Path) -> None:  # noqa: F811
    with Store.open(db) as store:
        definitions = list_definitions(store)
    one_by_one = make_url(tmp_path / "store")
    with Store.open(one_by_one, clock=lambda: CLOCK) as store:
        for index, number in enumerate(plan_repositories(SIZE)):
            for change in generate_repository(index, number):
                write_through_store(store, change)
    write_database(db, SIZE)
    expected, actual = read_tables(one_by_one), read_tables(db)
    assert {name: len(rows) for name, rows in actual.items()} == {name: len(rows) for name, rows in expected.items()}
    assert actual == expected
    with Store.open(db) as store:
        assert list_definitions(store) == definitions
    assert len(actual["task_listing"]) > SIZE / 2


@pytest.mark.postgres
def test_a_copy_on_postgresql_has_all_rows_and_takes_more(server: PostgresServer, tmp_path: Path) -> None:  # noqa: F811
    source, target, fresh = make_url(tmp_path), server.create_database(), server.create_database()
    write_database(source, SIZE)
    copy_database(source, target)
    assert read_tables(target) == read_tables(source)
    with Store.open(fresh) as store:
        expected = list_definitions(store)
    with Store.open(target) as store:
        assert list_definitions(store) == expected
        change = next(iter(generate_repository(10_000, 1)))
        write_through_store(store, change)
        assert store.get(PullRequest, change.pull_request.id) == change.pull_request


def list_definitions(store: Store) -> list[tuple[str, ...]]:
    """Return the definitions of all indices and constraints."""
    queries = {
        "sqlite": ("SELECT name, sql FROM sqlite_master WHERE sql > '' AND type IN ('index', 'table')",),
        "postgresql": (
            "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
            """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
               WHERE connamespace = 'public'::regnamespace""",
        ),
    }[store.engine.dialect.name]
    with store.read_transaction() as connection:
        return sorted(tuple(row) for query in queries for row in connection.exec_driver_sql(query))


def test_generated_rows_are_realistic_and_valid(tmp_path: Path) -> None:
    changes = [change for index in range(8) for change in generate_repository(index, 12)]
    tasks = [done.result for change in changes for done in change.results if isinstance(done.result, Task)]
    rejections = [change.mined for change in changes if isinstance(change.mined, Rejection)]
    rejections += [done.result for change in changes for done in change.results if isinstance(done.result, Rejection)]
    tested = [task for task in tasks if task.PASS_TO_PASS]
    assert 1.5 < len(rejections) / len(tasks) < 2.5
    assert 3 < sum(len(task.FAIL_TO_PASS) for task in tested) / len(tested) < 8
    assert 100 < sum(len(task.PASS_TO_PASS) for task in tested) / len(tested) < 400
    assert len({task.kind for task in tasks}) >= 5
    for change in changes:
        for record in (change.pull_request, change.tags, change.mined, *(done.result for done in change.results)):
            assert type(record).model_validate_json(record.model_dump_json()) == record


def test_every_record_of_a_chain_is_generated() -> None:
    changes = list(generate_repository(0, 12))
    made = {type(change.mined) for change in changes} | {
        type(done.result) for change in changes for done in change.results
    }
    outside_chains = {Audit, Bundle, ImageCopy, Rollout, SimulatorMeasurement, Trajectory, TrajectorySelection}
    assert made | {PullRequest, Tags} == set(RECORD_TABLES) - outside_chains - RECORDS_WITHOUT_CHANGE


def make_report(**changes: Any) -> SizeReport:
    fields: dict[str, Any] = {
        "name": "SQLite",
        "n_tasks": 10,
        "comparisons": [Comparison(name="tasks list", ours=0.1, by_hand=0.09, by_library=0.09)],
        "rows_per_second": (60.0, 100.0),
        "memory": {"list": 110},
        "smallest_memory": {"list": 100},
        "n_bytes": 10,
        "process_seconds": (0.4, 0.1),
    }
    return SizeReport(**fields | changes)


def test_every_goal_can_be_missed() -> None:
    assert make_report().list_missed_goals() == []
    bad = {
        "tasks list: ratio 2.00": {
            "comparisons": [Comparison(name="tasks list", ours=0.1, by_hand=0.05, by_library=0.06)]
        },
        "export: ratio 0.40": {"rows_per_second": (40.0, 100.0)},
        "memory of list: 1.50 times the smallest size": {"memory": {"list": 150}},
        "mergemill tasks list: 0.90 s beyond a bare Python process": {"process_seconds": (1.0, 0.1)},
    }
    for line, changes in bad.items():
        assert make_report(**changes).list_missed_goals() == [f"SQLite, 10 tasks: {line}"]
    small = [Comparison(name="tasks list", ours=0.0010, by_hand=0.0001, by_library=0.0002)]
    assert make_report(comparisons=small).list_missed_goals() == []


def test_the_benchmark_measures_every_query_and_misses_goals_with_check(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.taskdb",
            "--sizes",
            "60",
            "--repetitions",
            "1",
            "--cpu",
            "--folder",
            str(tmp_path),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for line in (
        "tasks list --repo",
        "tasks show ID",
        "tasks search",
        "funnel",
        "what a rerun has left",
        "bytes a task",
    ):
        assert line in done.stdout
    assert list(tmp_path.iterdir()) == []


def make_plain(rows: Any) -> Any:
    """Rows of any class as tuples, those of lists in any order."""
    if isinstance(rows, list):
        return sorted(map(make_plain, rows), key=repr)
    return tuple(map(make_plain, rows)) if isinstance(rows, Sequence) and not isinstance(rows, str | bytes) else rows


def test_both_sides_of_a_comparison_answer_the_same(db: str, tmp_path: Path) -> None:  # noqa: F811
    write_database(db, QUERIED_SIZE)
    write_artifacts(tmp_path)
    with Store.open(db) as store, open_driver(db) as execute:
        for query in list_queries(store, execute, Artifacts(tmp_path)):
            ours: Any = query.ours()
            by_hand: Any = query.by_hand(execute)
            assert make_plain(query.by_hand(make_library_execute(store))) == make_plain(by_hand), query.name
            if query.name.startswith(("tasks list", "tasks search")) and not query.name.endswith("--count"):
                compared = [tuple(row.values())[: len(LIST_KEYS)] for row in ours]
                assert sorted(compared) == sorted(tuple(row)[: len(LIST_KEYS)] for row in by_hand), query.name
            elif query.name.endswith("--count"):
                assert ours == by_hand[0][0]
            assert ours or query.name == NO_MATCH, query.name


def test_both_sides_of_the_export_write_the_same_rows(db: str, tmp_path: Path) -> None:  # noqa: F811
    write_database(db, SIZE)
    with Store.open(db) as store:
        write_parquet(iter_rows(store), tmp_path / "ready.parquet")
        write_task_table(store, TaskFilters(), tmp_path / "streamed.parquet")
    streamed, ready = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("streamed", "ready"))
    assert set(streamed.column_names) == set(ready.column_names)

    def parse(row: dict[str, Any]) -> dict[str, Any]:
        return row | {name: json.loads(row[name]) for name in ("plan", "oracle")}

    assert list(map(parse, streamed.to_pylist())) == list(map(parse, ready.select(streamed.column_names).to_pylist()))
    assert streamed.num_rows > SIZE / 2


def test_generated_tasks_can_be_exported(tmp_path: Path) -> None:
    url = make_url(tmp_path)
    write_artifacts(tmp_path / "artifacts")
    write_database(url, 30, workers=1)
    with Store.open(url) as store:
        write_trees(store, BaseTreeStore(tmp_path / "trees"))
    assert time_bundles(url, tmp_path, ["slime", "harbor"]).keys() == {"slime", "harbor"}
    with Store.open(url) as store:
        assert {bundle.format for bundle in store.load_all(Bundle)} == {"slime", "harbor"}
