"""Files of a task that a solver gets in addition to the image."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from core.errors import InputError
from taskdb.artifacts import Artifacts
from taskdb.oracles import ReviewOracle
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


def list_material(task: Task, artifacts: Artifacts) -> dict[str, str]:
    """Return path -> text: `statement.md`; for a review also `files/...` and, where a diff is reviewed, `diff`.

    Paths that lead out of the folder are excluded; git itself has none.
    """
    material = {"statement.md": task.problem_statement}
    if isinstance(task.oracle, ReviewOracle):
        files = task.oracle.load_files(artifacts).items()
        material |= {f"files/{path}": text for path, text in files if _is_inside(path)}
        if task.oracle.diff is not None:
            material["diff"] = artifacts.get_text(task.oracle.diff)
    return material


def _is_inside(path: str) -> bool:
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
