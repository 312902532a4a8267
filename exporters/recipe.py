"""How a task's image is made anew from a bundle alone: a Dockerfile, the base tree, the scripts that it copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backends.overlay import tree_of
from dockerfiles.render import official_image, render, text
from exporters.bundle import put
from exporters.tree import write_tree

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

TREE = "tree.tar.gz"


def write_recipe(task: Task, folder: Path, services: Services) -> None:
    """Write `Dockerfile`, `tree.tar.gz`, `finish.sh` and `settle.sh` into `folder`.

    Raises:
        InputError: the clone of the task's source is gone.
    """
    put(folder / "Dockerfile", render(task.the_plan, name=task.name, base=official_image(task.the_plan), tree=TREE))
    for script in ("finish.sh", "settle.sh"):
        put(folder / script, text(script))
    with tree_of(task, services) as (history, commit):
        write_tree(history, commit, folder / TREE)
