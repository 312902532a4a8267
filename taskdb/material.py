"""What a solver is given of a task beside its image."""

from __future__ import annotations

from pathlib import PurePosixPath

from taskdb.artifacts import Artifacts
from taskdb.oracles import Review
from taskdb.records import Task


def given_to_solver(task: Task, artifacts: Artifacts) -> dict[str, str]:
    """Path -> text: `statement.md`; of a review also the files below `files/` and, where a diff is reviewed, `diff`.

    Paths that would lead out of the folder are left out; git has none.
    """
    given = {"statement.md": task.problem_statement}
    if isinstance(task.oracle, Review):
        files = task.oracle.texts(artifacts).items()
        given |= {f"files/{path}": text for path, text in files if _inside(path)}
        if task.oracle.diff is not None:
            given["diff"] = artifacts.text(task.oracle.diff)
    return given


def _inside(path: str) -> bool:
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
