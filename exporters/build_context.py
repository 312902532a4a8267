"""Docker build context in a bundle: a Dockerfile, and the base tree and scripts, or the material, that it copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dockerfiles.render import find_official_image, read_resource, render_dockerfile
from exporters.bundle_writer import write_file
from exporters.review_context import write_review_context
from exporters.tree import TREE_ARCHIVE
from taskdb.records.oracles import ReviewOracle

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem


def write_build_context(item: ExportItem, folder: Path, services: Services) -> None:
    """Write `Dockerfile`, `tree.tar.gz`, `finish.sh` and `clean_tree.sh` into `folder`; for a review, its material.

    Tasks of a bundle that start from equal trees share an archive.

    Raises:
        InputError: the clone of the task's source is missing.
    """
    if isinstance(item.task.oracle, ReviewOracle):
        write_review_context(item, folder, services)
        return
    plan = item.task.require_plan()
    write_file(
        folder / "Dockerfile",
        render_dockerfile(plan, name=item.task.name, base=find_official_image(plan), tree=TREE_ARCHIVE),
    )
    for script in ("finish.sh", "clean_tree.sh"):
        write_file(folder / script, read_resource(script))
    item.trees.write(item.task, folder / TREE_ARCHIVE, services)
