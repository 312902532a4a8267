"""Docker build context of a review: its material and the tree around it, as there is nothing to run."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from backends.tree_tar import OWNER_ID
from dockerfiles.render import render_review_dockerfile
from exporters.bundle_writer import write_file
from exporters.prompts import REVIEW_FOLDER, REVIEW_TREE
from exporters.solver_files import list_solver_files
from exporters.tree import TREE_ARCHIVE
from taskdb.records.oracles import ReviewOracle

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

MATERIAL_ARCHIVE = "review.tar.gz"
"""Archive with `files/...` and, where a change is under review, `diff`."""


def write_review_context(item: ExportItem, folder: Path, services: Services) -> None:
    """Write `Dockerfile`, MATERIAL_ARCHIVE and, where the review has a tree, TREE_ARCHIVE into `folder`.

    Raises:
        InputError: the tree is neither in the store nor in a clone of the task's source.
    """
    task, oracle = item.task, item.task.oracle
    commit = oracle.tree if isinstance(oracle, ReviewOracle) else None
    trees = {REVIEW_TREE: TREE_ARCHIVE} if commit else {}
    dockerfile = render_review_dockerfile(name=task.name, archive=MATERIAL_ARCHIVE, folder=REVIEW_FOLDER, trees=trees)
    write_file(folder / "Dockerfile", dockerfile)
    if commit:
        item.trees.write_read_only(task, commit, folder / TREE_ARCHIVE, services)
    files = list_solver_files(task, services.artifacts)
    del files["statement.md"]  # it is the instruction
    write_file(folder / MATERIAL_ARCHIVE, _pack_files(files))


def _pack_files(files: dict[str, str]) -> bytes:
    """Return a .tar.gz of texts; an archive, as their names may be ones that this file system cannot hold."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(files):
            content = files[name].encode(errors="surrogateescape")
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime, member.uid, member.gid = len(content), 0o644, 0, OWNER_ID, OWNER_ID
            tar.addfile(member, io.BytesIO(content))
    return raw.getvalue()
