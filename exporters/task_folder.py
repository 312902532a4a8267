"""Folder of a task beside the rows of a bundle: for reading, for audits, and for rebuilding the image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exporters import task_files
from exporters.build_context import write_build_context
from exporters.bundle_writer import write_file
from exporters.task_files import CONTROLS_FILE

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem


def write_task_folder(item: ExportItem, folder: Path, services: Services) -> None:
    """Write the task's record, script and patches, and its build context, into `folder`."""
    task = item.task
    if task.eval_script:
        write_file(folder / "eval.sh", services.artifacts.get(task.eval_script), executable=True)
    texts = {
        "gold.patch": task.gold_patch,
        "test.patch": task.test_patch,
        "setup.patch": task.setup_patch,
        CONTROLS_FILE: task.blind_controls,
    }
    for name, digest in texts.items():
        if digest:
            write_file(folder / name, services.artifacts.get(digest))
    write_file(folder / task_files.RECORD_FILE, task_files.encode_record(task))
    write_build_context(item, folder, services)
