"""verl (0.9): `train.parquet` and `test.parquet` for its RLHFDataset, and a reward function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from exporters import rows
from training_data.parquet import ParquetShards

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", rows.MESSAGES_TYPE),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("index", pa.int64()), *rows.TRAINING_TYPES.items()])),
    ]
)


def write_verl(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the rows by split, the reward function and a folder per task."""
    with ExitStack() as stack:
        files = {split: stack.enter_context(ParquetShards(folder / split, SCHEMA)) for split in ("train", "test")}
        for row in rows.iterate_training_rows(items, folder, services):
            file = files[row["split"]]
            file.add(build_verl_row(row, file.count))
    rows.write_reward_module(folder)
    rows.write_shipped_file("mergemill_verl.py", folder / "mergemill_verl.py")


def build_verl_row(row: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return a row as verl reads it; its reward managers hand `extra_info` to the reward function."""
    return {
        "data_source": rows.DATA_SOURCE,
        "prompt": rows.build_messages(row),
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": row["instance_id"]},
        "extra_info": {"index": index, **row},
    }
