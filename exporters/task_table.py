"""A Parquet table of tasks for analysis: a row for each, without folders, images and patches.

Columns are those of the view `tasks`, and the fields of the records; FIELDS lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import make_write_error
from core.text import replace_surrogates
from taskdb.queries.task_columns import (
    JSON_FIELDS,
    LIST_FIELDS,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    ListColumn,
    TaskColumnBatch,
    iter_task_columns,
)
from taskdb.queries.task_filters import TaskFilters
from taskdb.schema.stored_records import parse_json
from taskdb.schema.task_columns import VALUE_TYPES
from taskdb.store import Store

GROUP_ROWS = 1000
"""Rows of a row group, and of the rows that are read at once."""
_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
_TEXTS = pa.list_(pa.string())
SCHEMA = pa.schema(
    [
        *((name, _TYPES[kind]) for name, kind in VALUE_TYPES.items()),
        ("certified", pa.bool_()),
        *((name, pa.string()) for name in (*TEXT_FIELDS, *JSON_FIELDS)),
        *((name, pa.int64()) for name in NUMBER_FIELDS),
        *((name, pa.list_(pa.dictionary(pa.int32(), pa.string()))) for name in LIST_FIELDS),
    ]
)
"""Columns of the table; its lists are plain texts in the file. `plan` and `oracle` are JSON, patches are hashes."""


def write_task_table(
    store: Store,
    filters: TaskFilters,
    path: Path,
    most: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
    *,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Write the selected tasks by name to a Parquet file; return their number. A file is replaced when it is complete.

    Args:
        store: the database.
        filters: selection of the tasks.
        path: the file.
        most: greatest number.
        advance: function that is called with the number of rows of each part that is read.
        notes: texts for the metadata of the file, by name.

    Raises:
        Transient: the disk is full or not writable.
    """
    partial = path.with_name(f".{path.name}.partial")
    number = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Parquet is written while the next rows are read.
        with pq.ParquetWriter(partial, SCHEMA, store_schema=False) as writer, ThreadPoolExecutor(1) as thread:
            written: Future[None] | None = None
            for batch in iter_task_columns(store, filters, GROUP_ROWS, most):
                if written:
                    written.result()
                written = thread.submit(_write_batch, writer, batch)
                n_rows = len(batch.values["id"])
                number += n_rows
                advance(n_rows)
            if written:
                written.result()
            if notes:
                writer.add_key_value_metadata(dict(notes))
        partial.replace(path)
    except OSError as error:
        advice = "free some space or choose another file"
        raise make_write_error(f"cannot write {path}", error, advice=advice) from error
    finally:
        with suppress(OSError):
            partial.unlink()
    return number


def _write_batch(writer: pq.ParquetWriter, batch: TaskColumnBatch) -> None:
    writer.write_table(build_task_table(batch))


def build_task_table(batch: TaskColumnBatch) -> pa.Table:
    """Return tasks as a table with SCHEMA."""
    certified = [value is not None for value in batch.values["certificate"]]
    columns = {name: _build_values(values, SCHEMA.field(name).type) for name, values in batch.values.items()}
    columns |= {name: _build_lists(column) for name, column in batch.lists.items()} | {"certified": pa.array(certified)}
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _build_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a lone surrogate, which Parquet cannot hold
        return pa.array([value if value is None else replace_surrogates(value) for value in values], kind)


def _build_lists(column: ListColumn) -> pa.Array:
    """Return the lists of all tasks; each different list is converted once, from its JSON where that is simple."""
    order = sorted(range(len(column.lists)), key=lambda place: _is_simple(column.lists[place]))
    others, simple = [], []
    for place in order:
        content = column.lists[place]
        if _is_simple(content):
            simple.append(content[2:-2])
        else:
            others.append(parse_json(content) if isinstance(content, bytes) else content)
    split = pc.split_pattern(pa.array(simple, pa.binary()).cast(pa.string()), '","')
    lists = pa.concat_arrays([_convert_lists(others), split])
    # Numbers of texts, not texts, are copied for each task.
    numbered = pa.ListArray.from_arrays(lists.offsets, lists.values.dictionary_encode())
    indices = [0] * len(order)
    for index, place in enumerate(order):
        indices[place] = index
    return numbered.take(pa.array([indices[place] for place in column.places], pa.int32()))


def _is_simple(content: bytes | Sequence[str]) -> bool:
    """Return whether the JSON of texts can be split at quotes: it has texts, and none with an escaped character."""
    return isinstance(content, bytes) and content[:2] == b'["' and b"\\" not in content


def _convert_lists(lists: Sequence[Sequence[str]]) -> pa.Array:
    try:
        return pa.array(lists, _TEXTS)
    except UnicodeEncodeError:
        return pa.array([[replace_surrogates(test) for test in tests] for tests in lists], _TEXTS)
