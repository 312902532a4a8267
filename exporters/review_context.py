"""Docker build context of a review: its material alone, as there is nothing to run."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from dockerfiles.render import render_review_dockerfile
from exporters.bundle_writer import write_file
from exporters.prompts import REVIEW_FOLDER
from exporters.solver_files import list_solver_files
from exporters.tree import OWNER_ID

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

MATERIAL_ARCHIVE = "review.tar.gz"
"""Archive with `files/...` and, where a change is under review, `diff`."""


def write_review_context(task: Task, folder: Path, services: Services) -> None:
    """Write `Dockerfile` and MATERIAL_ARCHIVE into `folder`."""
    dockerfile = render_review_dockerfile(name=task.name, archive=MATERIAL_ARCHIVE, folder=REVIEW_FOLDER)
    write_file(folder / "Dockerfile", dockerfile)
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
