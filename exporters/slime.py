"""slime: `train.jsonl` and `test.jsonl` for its Dataset, and a reward function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporters import rows

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem


def write_slime(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the rows by split, the reward function and a folder per task."""
    with rows.SplitJsonLines(folder) as files:
        for row in rows.iterate_training_rows(items, folder, services):
            files.add(row["split"], build_slime_row(row))
    rows.write_reward_module(folder)
    rows.write_shipped_file("mergemill_slime.py", folder / "mergemill_slime.py")


def build_slime_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for --input-key prompt --label-key label --metadata-key metadata --apply-chat-template."""
    return {"prompt": rows.build_messages(row), "label": row["instance_id"], "metadata": dict(row)}
