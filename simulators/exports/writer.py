"""Rows of a run, as a folder for each format. Files are replaced whole, so a run may be continued and written again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import make_write_error
from simulators.domains.pack import DomainPack
from simulators.exports.card import DatasetFacts, build_card
from simulators.exports.formats import LeftOutError, Row, RowFormat
from simulators.options import SimulationOptions
from simulators.trajectory import SimulatedTrajectory
from training_data.card import render_card
from training_data.row_files import open_lines, replace_file

ROWS_NAME = "train.jsonl"
TABLE_NAME = "data/train-00000-of-00001.parquet"
GROUP_ROWS = 1000
"""Rows of a row group of parquet."""
TABLE_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("environment", pa.string()),
        ("domain", pa.string()),
        ("license", pa.string()),
        ("based_on_sample", pa.string()),
        ("sample_turns", pa.int32()),
        ("generated_turns", pa.int32()),
        ("messages", pa.string()),
        ("tools", pa.string()),
        ("metadata", pa.string()),
    ]
)


@dataclass
class FormatReport:
    """Rows of a format, and what it could not hold."""

    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def write_exports(
    trajectories: Iterable[SimulatedTrajectory],
    out: Path,
    formats: Iterable[RowFormat],
    *,
    pack: DomainPack,
    options: SimulationOptions,
    facts: DatasetFacts,
) -> dict[str, FormatReport]:
    """Write trajectories in each format to `out/FORMAT`; return format -> report.

    Raises:
        InputError: writing is not permitted.
        Transient: the disk is full.
    """
    chosen = list(formats)
    reports = {one.name: FormatReport() for one in chosen}
    try:
        with ExitStack() as stack:
            writers = [(one, stack.enter_context(_open_rows(out / one.name, one))) for one in chosen]
            for trajectory in trajectories:
                facts.add(trajectory)
                for row_format, write in writers:
                    report = reports[row_format.name]
                    try:
                        write(row_format.build(trajectory, pack, options))
                    except LeftOutError as error:
                        report.left_out[str(error)] += 1
                    else:
                        report.rows += 1
        for one in chosen:
            report = reports[one.name]
            data_files = TABLE_NAME if one.is_table else ROWS_NAME
            card = build_card(facts, rows=report.rows, data_files=data_files, left_out=report.left_out)
            replace_file(out / one.name / "README.md", render_card(card))
            if one.dataset_info is not None:
                replace_file(out / one.name / "dataset_info.json", json.dumps(one.dataset_info, indent=1) + "\n")
        card = build_card(facts, rows=facts.trajectories, data_files="", left_out=Counter())
        replace_file(out / "README.md", render_card(card))
    except OSError as error:
        raise make_write_error(f"cannot write to {out}", error, advice="free some space, then run it again") from error
    return reports


@contextmanager
def _open_rows(folder: Path, row_format: RowFormat) -> Iterator[Any]:
    if not row_format.is_table:
        with open_lines(folder / ROWS_NAME) as write:
            yield write
        return
    path = folder / TABLE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    waiting: list[Row] = []
    with pq.ParquetWriter(temporary, TABLE_SCHEMA, compression="zstd") as writer:

        def collect(row: Row) -> None:
            waiting.append(row)
            if len(waiting) >= GROUP_ROWS:
                flush()

        def flush() -> None:
            if waiting:
                writer.write_table(pa.Table.from_pylist(waiting, TABLE_SCHEMA))
                waiting.clear()

        yield collect
        flush()
    temporary.replace(path)
