"""Docker build context in a bundle: a Dockerfile, the base tree and the scripts that it copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backends.overlay import open_task_tree
from dockerfiles.render import find_official_image, read_resource, render_dockerfile
from exporters.bundle_writer import write_file
from exporters.tree import write_tree

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

TREE_ARCHIVE = "tree.tar.gz"


def write_build_context(task: Task, folder: Path, services: Services) -> None:
    """Write `Dockerfile`, `tree.tar.gz`, `finish.sh` and `clean_tree.sh` into `folder`.

    Raises:
        InputError: the clone of the task's source is missing.
    """
    write_file(
        folder / "Dockerfile",
        render_dockerfile(
            task.require_plan(), name=task.name, base=find_official_image(task.require_plan()), tree=TREE_ARCHIVE
        ),
    )
    for script in ("finish.sh", "clean_tree.sh"):
        write_file(folder / script, read_resource(script))
    with open_task_tree(task, services) as (history, commit):
        write_tree(history, commit, folder / TREE_ARCHIVE)
