"""Files of a task that a solver gets in addition to the image."""

from __future__ import annotations

from pathlib import Path

from core.errors import InputError
from exporters.solver_files import list_solver_files
from taskdb.artifacts import Artifacts
from taskdb.records import Task


def write_material(task: Task, artifacts: Artifacts, folder: Path) -> int:
    """Write the material of a task to a new or empty folder and return the number of files.

    Raises:
        InputError: the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not an empty folder", advice="choose another --out")
    files = list_solver_files(task, artifacts)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode(errors="surrogateescape"))
    return len(files)
