"""NeMo-Gym (0.4): a resources server with its data, to be copied into a checkout, and rows for its simple agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from exporters import rows
from exporters.bundle_writer import write_file

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

SERVER = "mergemill"
AGENT = "mergemill_simple_agent"
SERVER_FOLDER = f"resources_servers/{SERVER}"
EXAMPLES = 5
"""Rows of `example.jsonl`, which NeMo-Gym requires of every server."""


def write_nemo_gym(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the resources server, its rows by split and a folder per task."""
    server = folder / SERVER_FOLDER
    examples: list[dict[str, Any]] = []
    with rows.SplitJsonLines(server / "data", names={"train": "train", "test": "validation"}) as files:
        for task_row in rows.iterate_training_rows(items, folder, services):
            row = build_nemo_gym_row(task_row)
            files.add(task_row["split"], row)
            if len(examples) < EXAMPLES:
                examples.append(row)
        present = files.list_names()
    rows.write_json_lines(server / "data" / "example.jsonl", examples)
    write_file(server / "configs" / f"{SERVER}.yaml", yaml.safe_dump(build_server_config(present), sort_keys=False))
    write_file(server / "requirements.txt", "-e nemo-gym[dev] @ ../../\n")
    rows.write_shipped_file("nemo_gym_app.py", server / "app.py")
    rows.write_reward_module(server)


def build_nemo_gym_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as NeMo-Gym's agents read it; its server receives `verifier_metadata`."""
    return {
        "responses_create_params": {"input": rows.build_messages(row)},
        "agent_ref": {"type": "responses_api_agents", "name": AGENT},
        "verifier_metadata": dict(row),
    }


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
        AGENT: {
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
