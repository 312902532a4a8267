"""Files of a task that a solver gets in addition to the image."""

from __future__ import annotations

from pathlib import Path

from core.errors import InputError
from exporters.material import list_material
from taskdb.artifacts import Artifacts
from taskdb.records import Task


def write_material(task: Task, artifacts: Artifacts, folder: Path) -> int:
    """Write the material of a task to a new or empty folder and return the number of files.

    Raises:
        InputError: the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not an empty folder", advice="choose another --out")
    material = list_material(task, artifacts)
    for path, content in material.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode(errors="surrogateescape"))
    return len(material)
