"""Records are stored compressed, with each list of tests once, and read back unchanged."""

from __future__ import annotations

import hashlib
import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from core.errors import InputError
from taskdb.queries.task_columns import JSON_FIELDS
from taskdb.records import FailureKind, Task, Verification
from taskdb.schema import stored_records
from taskdb.schema.stored_records import ListBatch
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import make_url

TESTS = tuple(f"tests/unit/module_{n % 17}/test_{n}.py::TestSomething::test_number_{n}" for n in range(200))


def add_tasks(store: Store, number: int, tests: tuple[str, ...]) -> Task:
    pull = records.make_pull_request(number)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate)
    f2p = tuple((test, FailureKind.ASSERTION) for test in tests[:5])
    verification = records.make_verification(environment, FAIL_TO_PASS=f2p, PASS_TO_PASS=tests)
    task = records.make_task(verification, candidate, FAIL_TO_PASS=f2p)
    store.add_mined_changes((pull, candidate, 0.1))
    store.add(environment, verification, task)
    return task


def read_lists(store: Store) -> list[tuple[int | None, int]]:
    with store.read_transaction() as connection:
        return [
            (row.base, len(row.content))
            for row in connection.exec_driver_sql("SELECT base, content FROM test_list ORDER BY seq")
        ]


def test_a_list_is_stored_once_and_neighbours_as_differences(db: str) -> None:
    with Store.open(db) as store:
        task = add_tasks(store, 1, TESTS)
        assert len(read_lists(store)) == 2  # shared by verification and task
        other = add_tasks(store, 2, (*TESTS[:-1], "tests/unit/test_new.py::test_new"))
        whole = max(size for base, size in read_lists(store) if base is None)
        differences = [size for base, size in read_lists(store) if base is not None]
        assert differences
        assert max(differences) < whole / 5
        for stored_task in (task, other):
            assert store.get(Task, stored_task.id) == stored_task
            assert store.get(Task, stored_task.id).id == compute_id(stored_task)
        assert {len(verification.PASS_TO_PASS) for verification in store.load_all(Verification)} == {200}


def compute_id(task: Task) -> str:
    return type(task).model_validate(task.model_dump()).id


def test_a_body_is_a_fraction_of_its_json() -> None:
    pull = records.make_pull_request()
    candidate = records.make_candidate(pull)
    task = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    packed = stored_records.pack_body(task.model_dump(mode="json"), ListBatch())
    assert len(packed) < len(task.model_dump_json()) / 2


def test_the_dictionary_never_changes() -> None:
    """Stored bodies cannot be read without it; another one is a new file with a new number."""
    path = stored_records.DICTIONARIES[1]
    assert path
    assert hashlib.sha256(path.read_bytes()).hexdigest() == DIGEST


DIGEST = "e021128f866c899419fc4d1dd28532a8494b40837b793af8f5e0edf84b79638e"


def test_a_damaged_body_is_named() -> None:
    whole = stored_records.compress_body(json.dumps({"a": 1}).encode())
    assert json.loads(stored_records.decompress_body(whole)) == {"a": 1}
    for damaged in (b"", b"\x09abc", whole[:4], whole[:1] + b"rest"):
        with pytest.raises(InputError, match="record"):
            stored_records.decompress_body(damaged)
    assert json.loads(stored_records.decompress_body(whole)) == {"a": 1}, "the decompressor is kept, and works on"


def test_many_bodies_are_each_what_they_are_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [json.dumps({"name": f"task {n}", "text": "x" * n}).encode() for n in (0, 1, 5000)]
    newest = [stored_records.compress_body(content) for content in contents]
    monkeypatch.setattr(stored_records, "_NEWEST", 0)
    older = [stored_records.compress_body(content) for content in contents]
    assert [body[0] for body in (newest[0], older[0])] == [1, 0]
    assert stored_records.decompress_bodies([]) == []
    for packed in (newest, older, [newest[0], older[1], newest[2]]):
        assert stored_records.decompress_bodies(packed) == contents
    for damaged, problem in ((newest[1][:-2], "damaged"), (b"\x07abc", "cannot be read"), (b"", "cannot be read")):
        for packed in ([newest[0], damaged], [damaged]):
            with pytest.raises(InputError, match=problem):
                stored_records.decompress_bodies(packed)


def test_threads_compress_and_decompress_at_once() -> None:
    contents = [random.Random(number).randbytes(100_000).hex().encode() for number in range(16)]
    with ThreadPoolExecutor(8) as threads:
        packed = list(threads.map(stored_records.compress_body, contents * 4))
        assert list(threads.map(stored_records.decompress_body, packed)) == contents * 4


def test_a_missing_list_is_named(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        task = add_tasks(store, 1, TESTS)
        with store.write_transaction() as connection:
            connection.exec_driver_sql("DELETE FROM test_list")
        with pytest.raises(InputError, match="2 lists of tests are missing"):
            store.get(Task, task.id)


def test_a_damaged_list_is_named(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        task = add_tasks(store, 1, TESTS)
        for damage in ("x'00ff'", "substr(content, 1, length(content) - 2)"):
            with store.write_transaction() as connection:
                connection.exec_driver_sql(f"UPDATE test_list SET content = {damage}")  # noqa: S608 - ours
            with pytest.raises(InputError, match="a list of tests is damaged"):
                store.get(Task, task.id)


def list_nested_names(model: type[BaseModel]) -> set[str]:
    """Return the names of the fields of all parts of a record, at any depth."""
    nested_names: set[str] = set()
    for field in model.model_fields.values():
        for part in find_parts(field.annotation):
            nested_names |= {*part.model_fields, *list_nested_names(part)}
    return nested_names


def find_parts(annotation: Any) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {part for inner in get_args(annotation) for part in find_parts(inner)}


def test_fields_that_are_cut_out_of_a_body_have_names_of_their_own() -> None:
    nested = list_nested_names(Task)
    assert {"evidence", "mutants", "missing"} <= nested
    assert not nested & {*JSON_FIELDS, *JSON_FIELDS.values()}
    order = sorted(Task.model_fields)
    assert {name: order[order.index(name) + 1] for name in JSON_FIELDS} == JSON_FIELDS


@pytest.mark.parametrize("missing", [None, "plan", "oracle", "problem_statement", "other_candidates"])
def test_fields_apart_are_the_same_data(missing: str | None) -> None:
    data = {
        "aim": '","oracle":{"x":1},"plan":null',
        "oracle": {"form": 'a","other_candidates":[],"plan":"'},
        "other_candidates": [],
        "plan": {"evidence": [{"note": '\\","problem_statement":"'}]},
        "problem_statement": ',"plan":{}',
        "version": "1",
    }
    data.pop(missing, None) if missing else None
    raw = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    rest, texts = stored_records.parse_apart(raw, JSON_FIELDS)
    assert rest == {name: value for name, value in data.items() if name not in JSON_FIELDS}
    assert {name: json.loads(text) for name, text in texts.items()} == {name: data.get(name) for name in JSON_FIELDS}
