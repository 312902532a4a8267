"""Tasks column by column, for tables of many of them: without records, whose parts nobody would read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, select

from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.schema.batches import KeyedQuery, stream_parts
from taskdb.schema.collation import ByteOrder
from taskdb.schema.columns import TASK_COLUMNS, TASK_LISTING
from taskdb.schema.stored_records import REFERENCE, decompress_bodies, load_list_contents, parse_apart, parse_json
from taskdb.store import Store

TEXT_FIELDS = (
    "parent",
    "version",
    "problem_statement",
    "hints",
    "gold_patch",
    "test_patch",
    "control_patch",
    "blind_controls",
    "setup_patch",
    "eval_script",
    "variant_of",
)
"""Fields of a task that are texts or None, and no columns of the view."""
NUMBER_FIELDS = ("evaluations",)
"""Fields of a task that are whole numbers, and no columns of the view."""
JSON_FIELDS: Mapping[str, str] = {"oracle": "other_candidates", "plan": "problem_statement"}
"""Fields that are given as JSON text -> the field behind each."""
LIST_FIELDS = ("FAIL_TO_PASS", "PASS_TO_PASS", "controls", "other_candidates")
"""Fields that are lists of texts."""
_PAIRS = "FAIL_TO_PASS"
"""List of pairs, of which the first is the test."""


@dataclass(frozen=True, kw_only=True)
class ListColumn:
    """Lists of texts of some tasks, each different list once."""

    lists: Sequence[bytes | Sequence[str]]
    """Each as JSON or as values."""
    places: Sequence[int]
    """For each task the index of its list."""


@dataclass(frozen=True, kw_only=True)
class TaskColumnBatch:
    """Values of some tasks by column."""

    values: Mapping[str, Sequence[Any]]
    """Columns of the view `tasks`, TEXT_FIELDS, NUMBER_FIELDS and JSON_FIELDS -> value of each task."""
    lists: Mapping[str, ListColumn]
    """LIST_FIELDS -> lists."""


def iter_task_columns(
    store: Store, filters: TaskFilters, size: int, most: int | None = None
) -> Iterator[TaskColumnBatch]:
    """Yield tasks by name (its bytes) in batches of a size, at most `most` tasks in all.

    Bodies are not validated: they were when they were stored.
    """
    by_name = (ByteOrder(TASK_LISTING.c.name), ByteOrder(TASK_LISTING.c.id))
    columns = (TASK_LISTING.c[name] for name in ("task", *TASK_COLUMNS))
    query = filters.apply(select(*columns), dict(TASK_LISTING.c)).order_by(*by_name).limit(most)
    with store.read_transaction() as connection:
        for part in stream_parts(connection, query, size):
            keys, *listed = zip(*part, strict=True)
            yield _read_bodies(connection, keys, dict(zip(TASK_COLUMNS, listed, strict=True)))


def _read_bodies(connection: Connection, keys: Sequence[int], listed: dict[str, Sequence[Any]]) -> TaskColumnBatch:
    packed: dict[int, bytes] = dict(_BODIES.fetch(connection, keys))
    bodies = decompress_bodies([packed[key] for key in keys])
    data, texts = zip(*(parse_apart(body, JSON_FIELDS) for body in bodies), strict=True)
    try:
        columns: list[Sequence[Any]] = list(zip(*map(_GET_PLAIN, data), strict=True))
    except KeyError:  # a body from before one of these fields
        columns = [[body.get(name, _DEFAULTS[name]) for body in data] for name in _PLAIN_FIELDS]
    values = dict(zip(_PLAIN_FIELDS, columns, strict=True))
    lists = {name: [body.get(name, _DEFAULTS[name]) for body in data] for name in LIST_FIELDS}
    shared = {value[REFERENCE] for column in lists.values() for value in column if isinstance(value, dict)}
    contents = load_list_contents(connection, sorted(shared))
    return TaskColumnBatch(
        values=listed | values | {name: [body[name] for body in texts] for name in JSON_FIELDS},
        lists={name: _build_lists(column, contents, pairs=name == _PAIRS) for name, column in lists.items()},
    )


_PLAIN_FIELDS = (*TEXT_FIELDS, *NUMBER_FIELDS)
_GET_PLAIN = itemgetter(*_PLAIN_FIELDS)
_DEFAULTS = {
    name: None if field.is_required() else field.get_default()
    for name, field in Task.model_fields.items()
    if name in (*_PLAIN_FIELDS, *LIST_FIELDS)
}
"""Values of fields that were added later than a body."""
_BODIES = KeyedQuery("SELECT seq, body FROM task WHERE seq IN :keys")


def _build_lists(column: Sequence[Any], contents: Mapping[str, bytes], *, pairs: bool) -> ListColumn:
    indices: dict[str, int] = {}
    lists: list[bytes | Sequence[str]] = []
    places = []
    for at, value in enumerate(column):
        key = value[REFERENCE] if isinstance(value, dict) else f"{at}" if value else ""
        place = indices.setdefault(key, len(lists))
        if place == len(lists):
            content = contents.get(key, value)
            parsed = parse_json(content) if pairs and isinstance(content, bytes) else content
            lists.append([test for test, _ in parsed] if pairs else parsed)
        places.append(place)
    return ListColumn(lists=lists, places=places)
