"""A task's base tree, read once: its lines, to tell old ones from new, and the files that probes are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from backends.overlay import tree_of
from backends.services import Services
from taskdb.records import Task
from verifiers.layers import hashes

Files = Iterable[tuple[str, bytes]]
"""(path, content) of the regular files of a tree."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """`lines`: hashes of every line of the tree (`verifiers.layers.hashes`); `files`: those that were to be kept."""

    lines: frozenset[int]
    files: dict[str, bytes]


def read_base(files: Files, keep: Callable[[str], bool] = lambda _: False) -> Base:
    """The tree of `files`; contents are kept of the paths that `keep` names."""
    lines: set[int] = set()
    kept: dict[str, bytes] = {}
    for path, content in files:
        lines.update(hashes(content))
        if keep(path):
            kept[path] = content
    return Base(lines=frozenset(lines), files=kept)


def cloned_files(task: Task, services: Services) -> Iterator[tuple[str, bytes]]:
    """The regular files that the agent is given, from the clone of the task's source.

    Raises:
        InputError: the clone is gone or lacks objects.
    """
    with tree_of(task, services) as (history, commit):
        entries = [entry for entry in history.ls_tree(commit) if entry.mode.startswith("100")]
        contents = history.blobs([entry.oid for entry in entries])
        yield from ((entry.path, content) for entry, content in zip(entries, contents, strict=True))
