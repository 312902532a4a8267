"""Prime Intellect's verifiers (0.4), which prime-rl trains with: an installable package with a taskset."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from exporters import rows
from exporters.bundle_writer import write_file
from exporters.export_format import ExportFormat
from exporters.verifier_files import explain_ungradable
from training_data.row_files import write_json_lines

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

PACKAGE = "mergemill_tasks"
PROJECT = {
    "project": {
        "name": "mergemill-tasks",
        "version": "0.1.0",
        "description": "Software-engineering tasks made from merged changes, each graded in a container",
        "requires-python": ">=3.11",
        "dependencies": ["verifiers>=0.4"],
        "keywords": ["verifiers", "environment", "software-engineering"],
    },
    "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
    "tool": {"hatch": {"build": {"targets": {"wheel": {"packages": [PACKAGE]}}}}},
}
INIT = """\
\"\"\"Tasks made from merged changes.\"\"\"

from mergemill_tasks.taskset import MergemillTaskset, load_environment

__all__ = ["MergemillTaskset", "load_environment"]
"""


def write_verifiers(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the package and a folder per task."""
    package = folder / PACKAGE
    write_json_lines(
        package / "tasks.jsonl",
        (row | {"prompt": rows.build_prompt(row)} for row in rows.iterate_training_rows(items, folder, services)),
    )
    write_file(folder / "pyproject.toml", tomli_w.dumps(PROJECT))
    write_file(package / "__init__.py", INIT)
    rows.write_shipped_file("prime_taskset.py", package / "taskset.py")
    rows.write_reward_module(package)


FORMATS = {"verifiers": ExportFormat(write=write_verifiers, explain_exclusion=explain_ungradable)}
