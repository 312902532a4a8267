"""Files of a task that a solver gets in addition to the image, or instead of one."""

from __future__ import annotations

from pathlib import PurePosixPath

from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle


def list_solver_files(task: Task, artifacts: Artifacts) -> dict[str, str]:
    """Return path -> text: `statement.md`; for a review also `files/...` and, where a diff is reviewed, `diff`.

    Paths that lead out of the folder are excluded; git itself has none.
    """
    files = {"statement.md": task.problem_statement}
    if isinstance(task.oracle, ReviewOracle):
        reviewed = task.oracle.load_files(artifacts).items()
        files |= {f"files/{path}": text for path, text in reviewed if _is_inside(path)}
        if task.oracle.diff is not None:
            files["diff"] = artifacts.get_text(task.oracle.diff)
    return files


def list_related_files(task: Task, artifacts: Artifacts) -> dict[str, str]:
    """Return path -> text of the related files of a review: `related/...`. Agents with tools have the tree instead."""
    related = task.oracle.load_related(artifacts) if isinstance(task.oracle, ReviewOracle) else {}
    return {f"related/{path}": text for path, text in related.items() if _is_inside(path)}


def _is_inside(path: str) -> bool:
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts and "\0" not in path
