"""Material of a task that a solver gets in addition to the image, or instead of it."""

from __future__ import annotations

from pathlib import PurePosixPath

from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle


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
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts and "\0" not in path
