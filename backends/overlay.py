"""Commits with a patch on top, made beside the history they are based on: nothing is written into that history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backends.git import GitRepository
from backends.index import ScratchIndex

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

_COMMITTER = "mergemill"


@contextmanager
def open_patched_commit(history: GitRepository, commit: str, *patches: bytes) -> Iterator[tuple[GitRepository, str]]:
    """Commit the patches, applied in sequence, on top of `commit`; yield the repository and the new commit.

    The repository reads the objects of `history` too. The same commit and patches give the same new commit.

    Raises:
        GitError: a patch does not apply, or objects are missing.
    """
    with ScratchIndex(history, commit) as index:
        for patch in patches:
            index.apply(patch)
        date = f"{history.run_git('log', '-1', '--format=%ct', commit).decode().strip()} +0000"
        env = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", _COMMITTER), ("EMAIL", f"{_COMMITTER}@localhost"), ("DATE", date))
        }
        created = index.repository.run_git("commit-tree", index.write_tree(), "-p", commit, "-m", "Patched", env=env)
        yield index.repository, created.decode().strip()


@contextmanager
def open_task_tree(task: Task, services: Services) -> Iterator[tuple[GitRepository, str]]:
    """Yield a repository and the commit in it that the agent starts from: base commit plus setup patch.

    Raises:
        InputError: the base tree is neither in the store nor in a clone of the task's source.
    """
    history = services.clones.open_tree(task.source, task.repo, task.base_commit)
    if task.setup_patch is None:
        yield history, task.base_commit
        return
    with open_patched_commit(history, task.base_commit, services.artifacts.get(task.setup_patch)) as patched_commit:
        yield patched_commit
