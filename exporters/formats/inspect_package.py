"""Inspect (inspect-ai 0.3): an installable package with a task, its scorer and a sandbox for a plain engine."""

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

PACKAGE = "mergemill_inspect"
PROJECT = {
    "project": {
        "name": "mergemill-inspect",
        "version": "0.1.0",
        "description": "Software-engineering tasks made from merged changes, each graded in a container",
        "requires-python": ">=3.10",
        "dependencies": ["inspect-ai>=0.3.200"],
        "entry-points": {"inspect_ai": {PACKAGE: f"{PACKAGE}.tasks"}},
    },
    "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
    "tool": {"hatch": {"build": {"targets": {"wheel": {"packages": [PACKAGE]}}}}},
}
INIT = """\
\"\"\"Tasks made from merged changes.\"\"\"

from mergemill_inspect.tasks import mergemill

__all__ = ["mergemill"]
"""


def write_inspect(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the package and a folder per task."""
    package = folder / PACKAGE
    training_rows = rows.iterate_training_rows(items, folder, services)
    write_json_lines(package / "tasks.jsonl", (row | {"prompt": rows.build_prompt(row)} for row in training_rows))
    write_file(folder / "pyproject.toml", tomli_w.dumps(PROJECT))
    write_file(package / "__init__.py", INIT)
    rows.write_shipped_file("inspect_tasks.py", package / "tasks.py")
    rows.write_reward_module(package)


FORMATS = {"inspect": ExportFormat(write=write_inspect, explain_exclusion=explain_ungradable)}
