"""Parquet files written in row groups of bounded size; equal rows give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

GROUP_BYTES = 16 * 1024 * 1024
"""Text in a row group before it is written, about; it bounds the memory."""
GROUP_ROWS = 1000
"""Rows in a row group at most."""
SHARD_BYTES = 512 * 1024 * 1024
"""Text in a shard before the next begins, about."""


class ParquetShards:
    """Context manager that writes rows to `STEM.parquet`, or to `STEM-00000-of-0000N.parquet` when `numbered`.

    A shard that is not numbered has no size limit. Files have their names once all rows are written.

    Args:
        stem: path of the files without number and suffix.
        schema: columns of the rows.
        numbered: whether a file of SHARD_BYTES is followed by another.
        group_rows: rows in a row group at most.
        keep_empty: whether there is a file when there are no rows.
    """

    def __init__(
        self,
        stem: Path,
        schema: pa.Schema,
        *,
        numbered: bool = False,
        group_rows: int = GROUP_ROWS,
        keep_empty: bool = False,
    ) -> None:
        self._stem, self._schema, self._numbered = stem, schema, numbered
        self._group_rows, self._keep_empty = group_rows, keep_empty
        self._paths: list[Path] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[Mapping[str, Any]] = []
        self._group_bytes = self._shard_bytes = 0
        self.count = 0
        """Number of rows written so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write_group()
            if self._keep_empty and not self._paths:
                self._open()
        self._close()
        if kind is None:
            for number, path in enumerate(self._paths):
                path.replace(self._stem.with_name(self._name_shard(number)))

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        size = measure_text(row)
        self._rows.append(row)
        self.count += 1
        self._group_bytes += size
        if self._group_bytes >= GROUP_BYTES or len(self._rows) >= self._group_rows:
            self._write_group()

    def _name_shard(self, number: int) -> str:
        part = f"-{number:05d}-of-{len(self._paths):05d}" if self._numbered else ""
        return f"{self._stem.name}{part}.parquet"

    def _open(self) -> pq.ParquetWriter:
        """Return the open shard, or open the next, which has a temporary name."""
        if self._writer is None:
            path = self._stem.with_name(f".{self._stem.name}.{len(self._paths)}.parquet.part")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(path, self._schema, compression="zstd", store_schema=True)
            self._paths.append(path)
        return self._writer

    def _write_group(self) -> None:
        if not self._rows:
            return
        self._open().write_table(build_table(self._rows, self._schema))
        self._shard_bytes += self._group_bytes
        self._rows, self._group_bytes = [], 0
        if self._numbered and self._shard_bytes >= SHARD_BYTES:
            self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._paths[-1].chmod(0o644)
        self._writer, self._shard_bytes = None, 0


def build_table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table. Equal lists of texts, as the tests of neighbours are, are converted once."""
    columns = [_build_column([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _build_column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not (pa.types.is_list(kind) and pa.types.is_string(kind.value_type)):
        return pa.array(values, kind)
    keys = [None if value is None else tuple(value) for value in values]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return pa.array(list(places), kind).take(pa.array([places[key] for key in keys], pa.int32()))


def measure_text(value: Any) -> int:
    """Return the number of characters in a value and all that it contains, with a constant for each other value."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(measure_text(inner) for inner in value.values())
    if not isinstance(value, list):
        return 8
    try:
        return len("".join(value))  # of hundreds of tests, in a tenth of the time of a loop
    except TypeError:
        return sum(measure_text(inner) for inner in value)
