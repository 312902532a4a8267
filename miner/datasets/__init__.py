"""Task sets of others, read as rows in SWE-bench's fields.

FORMATS is the complete list: format -> function that converts a row. A row that cannot be converted is an error with
its place, and the others are read. Files are JSON lines (also `.gz`), JSON lists or Parquet; Harbor sets are folders.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import InputError, UsageError
from core.files import open_input
from miner import multi_swe_bench
from miner.datasets import harbor_tasks, r2e_gym, swe_rebench, swe_smith
from miner.datasets.rows import Row
from miner.instances import InstanceRow, parse_instance, read_lines

MAX_FILE_BYTES = 4 << 30
"""Size of a JSON list, which is read at once."""


def _keep(row: Row) -> Row:
    return row


FORMATS: Mapping[str, Callable[[Row], Row]] = {
    "swebench": _keep,
    "swe-smith": swe_smith.convert_row,
    "multi-swe-bench": multi_swe_bench.convert_row,
    "swe-rebench": swe_rebench.convert_row,
    "r2e-gym": r2e_gym.convert_row,
    "harbor": _keep,
}
"""Name of the format -> function that returns a row in SWE-bench's fields."""


def read_rows(path: Path, format_name: str) -> Iterator[tuple[str, InstanceRow | InputError]]:
    """Yield the place of each row (`FILE:LINE`, or a folder) with the row, or why it cannot be used.

    Args:
        path: a file, or a folder of tasks for `harbor`.
        format_name: a key of FORMATS.

    Raises:
        UsageError: there is no such format.
        InputError: the file cannot be read.
    """
    if format_name not in FORMATS:
        raise UsageError(f"there is no format {format_name!r}", advice=f"formats: {', '.join(FORMATS)}")
    rows = harbor_tasks.read_tasks(path) if format_name == "harbor" else _read_file(path)
    for place, row in rows:
        if isinstance(row, InputError):
            yield place, row
            continue
        try:
            yield place, _convert_row(row, FORMATS[format_name])
        except InputError as error:
            yield place, InputError(f"{place}: {error}")


def _convert_row(row: Any, convert: Callable[[Row], Row]) -> InstanceRow:
    if not isinstance(row, dict):
        raise InputError("not a JSON object")
    try:
        converted = json.dumps(convert(row), default=str)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"a field is missing or malformed: {str(error)[:200]!r}") from error
    return parse_instance(converted)


def _read_file(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".parquet":
        yield from _read_parquet(path)
    elif path.suffix == ".json":
        yield from _read_list(path)
    else:
        for number, line in read_lines(path):
            place = f"{path}:{number}"
            try:
                yield place, json.loads(line)
            except (ValueError, RecursionError):
                yield place, InputError(f"{place}: not JSON")


def _read_list(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with open_input(path) as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise InputError(f"{path} has more than {MAX_FILE_BYTES} bytes", advice="convert it to JSON lines")
        rows = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {path}: it is no JSON list") from error
    if not isinstance(rows, list):
        raise InputError(f"cannot read {path}: it is no JSON list")
    yield from ((f"{path}:{number}", row) for number, row in enumerate(rows, 1))


def _read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa  # noqa: PLC0415 - few sets are in such files
    from pyarrow import parquet  # noqa: PLC0415 - as above

    number = 0
    try:
        with open_input(path) as raw, parquet.ParquetFile(raw) as file:
            for batch in file.iter_batches(batch_size=100):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}:{number}", row
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {str(error)[:200]!r}") from error
