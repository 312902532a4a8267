"""SkyRL (skyrl-gym 0.4): `train.parquet` and `test.parquet` for its PromptDataset, and an environment class."""

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

ENV_CLASS = "mergemill"
"""Name under which `mergemill_skyrl.py` registers its environment."""

SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", rows.MESSAGES_TYPE),
        ("env_class", pa.string()),
        ("reward_spec", pa.struct([("method", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct(list(rows.TRAINING_TYPES.items()))),
    ]
)


def write_skyrl(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the rows by split, the environment class and a folder per task."""
    with ExitStack() as stack:
        files = {split: stack.enter_context(ParquetShards(folder / split, SCHEMA)) for split in ("train", "test")}
        for row in rows.iterate_training_rows(items, folder, services):
            files[row["split"]].add(build_skyrl_row(row))
    rows.write_reward_module(folder)
    rows.write_shipped_file("mergemill_skyrl.py", folder / "mergemill_skyrl.py")


def build_skyrl_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as SkyRL reads it; all columns but the prompt reach the environment as its extras."""
    return {
        "data_source": rows.DATA_SOURCE,
        "prompt": rows.build_messages(row),
        "env_class": ENV_CLASS,
        "reward_spec": {"method": "rule", "ground_truth": row["instance_id"]},
        "extra_info": dict(row),
    }
