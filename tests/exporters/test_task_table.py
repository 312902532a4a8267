"""A table of tasks holds what their records hold, on both databases, and replaces a file only when it is complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from benchmarks.taskdb.write import write_database
from core.errors import InputError, Transient
from core.text import replace_surrogates
from exporters import task_table
from taskdb.queries import tasks as queries
from taskdb.queries.task_columns import JSON_FIELDS, LIST_FIELDS, NUMBER_FIELDS, TEXT_FIELDS
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import BuildPlan, Evidence, FailureKind, Task
from taskdb.schema.stored_records import compress_body
from taskdb.store import Store
from tests import records
from tests.taskdb.conftest import db, opened, postgresql, server  # noqa: F401 - the databases of those tests

HOSTILE = '","problem_statement":"x","plan":{"a":[1]},"published":null}\\ \n\x7f \u2028 ü 😀'
TESTS = tuple(f'tests/test_{n}.py::test[",", "{n}" \\ ü]' for n in range(20))
SIZE = 150


def build_expected(store: Store, filters: TaskFilters) -> list[dict[str, Any]]:
    expected = []
    for task, certificate, row in queries.iter_tasks(store, filters):
        data = task.model_dump(mode="json")
        texts = {name: None if data[name] is None else replace_surrogates(data[name]) for name in TEXT_FIELDS}
        lists = {name: data[name] for name in LIST_FIELDS} | {"FAIL_TO_PASS": [test for test, _ in task.FAIL_TO_PASS]}
        parts = {name: data[name] for name in (*JSON_FIELDS, *NUMBER_FIELDS)}
        expected.append(row | texts | lists | parts | {"certified": certificate is not None})
    return expected


def read_rows(path: Path) -> list[dict[str, Any]]:
    rows = pq.read_table(path).to_pylist()
    return [row | {name: json.loads(row[name]) for name in JSON_FIELDS} for row in rows]


def add_task(store: Store, number: int, **changes: Any) -> Task:
    pull = records.make_pull_request(number)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment)
    task = records.make_task(verification, candidate, **changes)
    store.add_mined_changes((pull, candidate, 0.1))
    store.add(environment, verification, task)
    return task


def test_rows_are_those_of_the_records(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(task_table, "GROUP_ROWS", 40)
    write_database(db, SIZE)
    note = Evidence(choice="language", value=HOSTILE, path="a", line=1)
    plan = BuildPlan(**{**records.PLAN.model_dump(), "evidence": (note,)})
    f2p = tuple((test, FailureKind.ERROR) for test in TESTS)
    with Store.open(db) as store:
        hostile = add_task(
            store, 1, problem_statement=HOSTILE, plan=plan, PASS_TO_PASS=TESTS, FAIL_TO_PASS=f2p, controls=TESTS[:1]
        )
        add_task(store, 2, problem_statement="\ud800 alone", PASS_TO_PASS=("", "a"), plan=None, hints=HOSTILE)
        for filters in (TaskFilters(), TaskFilters(kind=("review", "injected"), changed_lines=None)):
            number = task_table.write_task_table(store, filters, tmp_path / "new" / "t.parquet")
            rows, expected = read_rows(tmp_path / "new" / "t.parquet"), build_expected(store, filters)
            assert number == len(rows) == len(expected) > 40
            assert rows == expected
        first = task_table.write_task_table(store, TaskFilters(), tmp_path / "t.parquet", 45)
        assert first == 45
        assert read_rows(tmp_path / "t.parquet") == build_expected(store, TaskFilters())[:45]
        task_table.write_task_table(store, TaskFilters(ids=(hostile.id,)), tmp_path / "t.parquet")
    [row] = read_rows(tmp_path / "t.parquet")
    assert (row["problem_statement"], tuple(row["PASS_TO_PASS"])) == (HOSTILE, TESTS)
    assert BuildPlan.model_validate(row["plan"]) == plan
    assert pq.read_schema(tmp_path / "t.parquet").field("PASS_TO_PASS").type.value_type == pa.string()


def test_bodies_from_before_a_field_have_its_default(db: str, tmp_path: Path) -> None:  # noqa: F811
    with Store.open(db) as store:
        for number in (1, 2):
            task = add_task(store, number)
        data = task.model_dump(mode="json", exclude={"variant_of", "other_candidates", "oracle"})
        with store.write_transaction() as connection:
            old = {
                "body": compress_body(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()),
                "id": task.id,
            }
            connection.execute(text("UPDATE task SET body = :body WHERE id = :id"), old)
        task_table.write_task_table(store, TaskFilters(), tmp_path / "t.parquet")
        assert read_rows(tmp_path / "t.parquet") == build_expected(store, TaskFilters())


def test_tests_that_no_text_can_hold_are_replaced(db: str, tmp_path: Path) -> None:  # noqa: F811
    with Store.open(db) as store:
        add_task(store, 1, PASS_TO_PASS=("test_\udcff", *TESTS))
        task_table.write_task_table(store, TaskFilters(), tmp_path / "t.parquet")
    [row] = read_rows(tmp_path / "t.parquet")
    assert row["PASS_TO_PASS"] == ["test_?", *TESTS]


def test_a_table_that_ends_early_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with Store.open(f"sqlite:///{tmp_path}/m.db") as store:
        assert task_table.write_task_table(store, TaskFilters(), path) == 0
        before = path.read_bytes()
        add_task(store, 1)

        def fail(_: int) -> None:
            raise InputError("a record is damaged")

        with pytest.raises(InputError, match="damaged"):
            task_table.write_task_table(store, TaskFilters(), path, advance=fail)
        assert path.read_bytes() == before
        assert sorted(path.name for path in tmp_path.iterdir() if "parquet" in path.name) == ["t.parquet"]
        with pytest.raises(Transient, match="cannot write"):
            task_table.write_task_table(store, TaskFilters(), tmp_path / "m.db" / "t.parquet")
