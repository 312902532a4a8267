"""Files of published tasks: JSON in any form of `core.json_files`, or Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.files import open_input
from core.json_files import JsonRow, read_rows


def read_row_file(path: Path) -> Iterator[JsonRow]:
    """Yield the rows of a file; a row of an object that is keyed by instance id may lack its `instance_id`.

    Raises:
        InputError: the file cannot be read, or a line or document is too long.
    """
    for row in _read_parquet(path) if path.suffix == ".parquet" else read_rows(path, _is_row):
        if row.problem:
            yield row
        elif not isinstance(row.value, dict):
            yield JsonRow(line=row.line, position=row.position, problem="it is not a JSON object")
        elif row.key is not None and "instance_id" not in row.value:
            named = {"instance_id": row.key, **row.value}
            yield JsonRow(line=row.line, position=row.position, key=row.key, value=named)
        else:
            yield row


def _is_row(document: dict[str, Any]) -> bool:
    """Return whether an object is a row; in an object of rows each value is an object."""
    return not all(isinstance(value, dict) for value in document.values())


def _read_parquet(path: Path) -> Iterator[JsonRow]:
    import pyarrow as pa  # noqa: PLC0415 - few sets are in such files
    from pyarrow import parquet  # noqa: PLC0415 - as above

    number = 0
    try:
        with open_input(path) as raw, parquet.ParquetFile(raw) as file:
            for batch in file.iter_batches(batch_size=100):
                for row in batch.to_pylist():
                    number += 1
                    # As JSON has neither dates nor bytes.
                    yield JsonRow(line=1, position=number, value=json.loads(json.dumps(row, default=str)))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {str(error)[:200]!r}") from error
