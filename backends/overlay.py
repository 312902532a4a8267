"""A commit with a patch on top, beside the history it is from: nothing is ever written into that history.

The new objects lie in a scratch repository whose alternates are the history's own objects. The same commit and patch
give the same new commit, wherever it is made.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from backends.git import Repository, git

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

_WHO = "mergemill"


@contextmanager
def patched(history: Repository, commit: str, *patches: bytes) -> Iterator[tuple[Repository, str]]:
    """A repository that holds `history` and, on `commit`, the patches one after another; and that new commit.

    Raises:
        GitError: a patch does not apply, or objects are missing.
    """
    with tempfile.TemporaryDirectory(prefix="mergemill-overlay-") as scratch:
        folder = Path(scratch) / "repo"
        git("init", "-q", "--bare", "--template=", str(folder))
        (folder / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (folder / "objects" / "info" / "alternates").write_text(f"{history.objects}\n")
        overlay = Repository(folder)
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        overlay.git("read-tree", commit, env=index)
        for patch in patches:
            if patch.strip():
                overlay.git("apply", "--cached", "--whitespace=nowarn", data=patch, env=index)
        tree = overlay.git("write-tree", env=index).decode().strip()
        when = f"{history.git('log', '-1', '--format=%ct', commit).decode().strip()} +0000"
        signed = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", _WHO), ("EMAIL", f"{_WHO}@localhost"), ("DATE", when))
        }
        made = overlay.git("commit-tree", tree, "-p", commit, "-m", "Patched", env=signed).decode().strip()
        yield overlay, made


@contextmanager
def tree_of(task: Task, services: Services) -> Iterator[tuple[Repository, str]]:
    """The history of a task, and the commit whose tree the agent is given: its base commit, with its setup patch.

    Raises:
        InputError: the clone of its source is gone, or lacks objects.
    """
    history = services.clones.open(task.source, task.repo)
    if task.setup_patch is None:
        yield history, task.base_commit
        return
    with patched(history, task.base_commit, services.artifacts.get(task.setup_patch)) as found:
        yield found
