"""A task's base tree, read once: hashes of its lines, and the files from which probes are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from backends.git import GitRepository
from backends.overlay import open_task_tree
from backends.services import Services
from evaluation.solution_lines import hash_lines
from taskdb.records import Task

TreeFiles = Iterable[tuple[str, bytes]]
"""(path, content) of the regular files of a tree."""


@dataclass(frozen=True, kw_only=True)
class BaseTreeIndex:
    """Lines and selected files of a base tree.

    Attributes:
        lines: hashes of every line (`evaluation.solution_lines.hash_lines`).
        files: contents of the selected files by path.
    """

    lines: frozenset[int]
    files: dict[str, bytes]


def index_base_tree(files: TreeFiles, keep: Callable[[str], bool] = lambda _: False) -> BaseTreeIndex:
    """Index the tree of `files`; contents are kept for paths accepted by `keep`."""
    lines: set[int] = set()
    kept: dict[str, bytes] = {}
    for path, content in files:
        lines.update(hash_lines(content))
        if keep(path):
            kept[path] = content
    return BaseTreeIndex(lines=frozenset(lines), files=kept)


def read_base_files(task: Task, services: Services) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files that the agent is given, from the clone of the task's source.

    Raises:
        InputError: the clone does not exist or lacks objects.
    """
    with open_task_tree(task, services) as (history, commit):
        yield from _read_files(history, commit)


def read_review_files(task: Task, commit: str, services: Services) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of the tree of a review, from the store or the clone of the task's source.

    Raises:
        InputError: the tree is in neither.
    """
    yield from _read_files(services.clones.open_tree(task.source, task.repo, commit), commit)


def _read_files(history: GitRepository, commit: str) -> Iterator[tuple[str, bytes]]:
    entries = [entry for entry in history.ls_tree(commit) if entry.mode.startswith("100")]
    contents = history.read_blobs([entry.oid for entry in entries])
    yield from ((entry.path, content) for entry, content in zip(entries, contents, strict=True))
