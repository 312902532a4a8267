"""Rows for trainers: verl (0.9), SkyRL (skyrl-gym 0.4) and slime, with the modules by which these grade them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporters import rows
from exporters.export_format import ExportFormat
from exporters.verifier_files import explain_ungradable
from training_data.episodes import NEMO_GYM, SKYRL, TrainingEpisode
from training_data.formats import FORMATS as ROW_FORMATS
from training_data.sources import RowSource
from training_data.writer import RowWriter

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

ENV_CLASS = "mergemill"
"""Name under which `mergemill_skyrl.py` registers its environment."""
NEMO_GYM_AGENT = "mergemill_simple_agent"
TASKS = RowSource(
    name="mergemill",
    ability="code",
    players={SKYRL: ENV_CLASS, NEMO_GYM: NEMO_GYM_AGENT},
    columns=rows.TRAINING_TYPES,
)


def write_trainer_rows(items: Iterable[ExportItem], folder: Path, services: Services, *, format_name: str) -> None:
    """Write the rows by split, the module that grades them and a folder per task.

    `format_name`: a key of `training_data.formats.FORMATS` with a module `mergemill_NAME.py` in `exporters/shipped`.
    """
    with RowWriter(folder, ROW_FORMATS[format_name], TASKS, splits=(), portable=True) as writer:
        for row in rows.iterate_training_rows(items, folder, services):
            writer.add(make_episode(row), split=row["split"])
    rows.write_reward_module(folder)
    module = f"mergemill_{format_name}.py"
    rows.write_shipped_file(module, folder / module)


def make_episode(row: Mapping[str, Any]) -> TrainingEpisode:
    """Return the episode of a row of `rows.build_training_row`."""
    return TrainingEpisode(
        source=TASKS,
        prompt=rows.build_messages(row),
        ground_truth=row["instance_id"],
        facts=row,
        split=row["split"],
    )


FORMATS = {
    name: ExportFormat(write=partial(write_trainer_rows, format_name=name), explain_exclusion=explain_ungradable)
    for name in ("verl", "skyrl", "slime")
}
