"""Files of a task that a solver gets in addition to the image."""

from __future__ import annotations

from pathlib import Path

from backends.clones import CloneStore
from core.errors import InputError
from exporters.solver_files import list_related_files, list_solver_files
from exporters.tree import TREE_ARCHIVE, write_tree
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle


def write_material(task: Task, artifacts: Artifacts, clones: CloneStore, folder: Path) -> int:
    """Write the material of a task to a new or empty folder and return the number of files.

    The tree around a review is an archive, as its names may be ones that this file system cannot hold.

    Raises:
        InputError: the folder is not empty, or the tree is neither in the store nor in a clone of the task's source.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not an empty folder", advice="choose another --out")
    files = list_solver_files(task, artifacts) | list_related_files(task, artifacts)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode(errors="surrogateescape"))
    commit = task.oracle.tree if isinstance(task.oracle, ReviewOracle) else None
    if commit is None:
        return len(files)
    tree = clones.open_tree(task.source, task.repo, commit)
    write_tree(tree, commit, folder / TREE_ARCHIVE, is_read_only=True)
    return len(files) + 1
