"""Task sets of others, read as rows in SWE-bench's fields.

FORMATS is the complete list: format -> function that converts a row. A row that cannot be converted is an error with
its place, and the others are read. Files are those of `miner.row_files`; Harbor sets are folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from core.errors import InputError, UsageError
from miner import multi_swe_bench
from miner.datasets import harbor_tasks, r2e_gym, swe_rebench, swe_smith
from miner.datasets.rows import Row
from miner.instances import InstanceRow, build_instance
from miner.row_files import read_row_file


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


def _convert_row(row: Row, convert: Callable[[Row], Row]) -> InstanceRow:
    try:
        converted = convert(row)
    except KeyError as error:
        raise InputError(f"field {str(error.args[0])[:100]} is missing") from error
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"a field is malformed: {str(error)[:200]!r}") from error
    return build_instance(converted)


def _read_file(path: Path) -> Iterator[tuple[str, Row | InputError]]:
    for row in read_row_file(path):
        place = f"{path}:{row.number}"
        yield place, InputError(f"{place}: {row.problem}") if row.problem else row.value
