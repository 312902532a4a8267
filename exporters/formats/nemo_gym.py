"""NeMo-Gym (0.4): a resources server with its data, to be copied into a checkout, and rows for its simple agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from exporters import rows
from exporters.bundle_writer import write_file
from exporters.export_format import ExportFormat
from exporters.formats.trainer_rows import NEMO_GYM_AGENT, TASKS, make_episode
from exporters.verifier_files import explain_ungradable
from training_data.episodes import NEMO_GYM
from training_data.formats import FORMATS as ROW_FORMATS
from training_data.row_files import write_json_lines
from training_data.sources import Row
from training_data.writer import RowWriter

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

SERVER = "mergemill"
SERVER_FOLDER = f"resources_servers/{SERVER}"
SPLIT_NAMES = {"train": "train", "test": "validation"}
EXAMPLES = 5
"""Rows of `example.jsonl`, which NeMo-Gym requires of every server."""


def write_nemo_gym(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the resources server, its rows by split and a folder per task."""
    server = folder / SERVER_FOLDER
    examples: list[Row] = []
    row_format = ROW_FORMATS[NEMO_GYM]
    with RowWriter(server / "data", row_format, TASKS, names=SPLIT_NAMES, splits=(), portable=True) as writer:
        for task_row in rows.iterate_training_rows(items, folder, services):
            written = writer.add(make_episode(task_row), split=task_row["split"])
            examples += written[: EXAMPLES - len(examples)]
        data_sets = [name for split, name in SPLIT_NAMES.items() if split in writer.splits]
    write_json_lines(server / "data" / "example.jsonl", examples)
    write_file(server / "configs" / f"{SERVER}.yaml", yaml.safe_dump(build_server_config(data_sets), sort_keys=False))
    write_file(server / "requirements.txt", "-e nemo-gym[dev] @ ../../\n")
    rows.write_shipped_file("nemo_gym_app.py", server / "app.py")
    rows.write_reward_module(server)


def build_server_config(data_sets: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of the server and of an agent that uses it, with those data sets."""
    sets = [
        {"name": name, "type": name, "jsonl_fpath": f"{SERVER_FOLDER}/data/{name}.jsonl", "license": "TBD"}
        for name in (*data_sets, "example")
    ]
    return {
        SERVER: {
            "resources_servers": {
                SERVER: {
                    "entrypoint": "app.py",
                    "domain": "coding",
                    "verified": False,
                    "description": "Tasks from merged changes, graded by their tests in a container",
                    "num_processes": 4,
                }
            }
        },
        NEMO_GYM_AGENT: {
            "responses_api_agents": {
                "simple_agent": {
                    "entrypoint": "app.py",
                    "resources_server": {"type": "resources_servers", "name": SERVER},
                    "model_server": {"type": "responses_api_models", "name": "policy_model"},
                    "datasets": sets,
                }
            }
        },
    }


FORMATS = {"nemo-gym": ExportFormat(write=write_nemo_gym, explain_exclusion=explain_ungradable)}
