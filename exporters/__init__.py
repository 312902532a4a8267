"""Export of tasks in the formats of other tools: a bundle needs the task's image and nothing else of the database.

FORMATS is the complete list. A format writes its files into a folder and returns notes on what it could not carry. The
rest is the same for all bundles: a manifest of hashes, and a temporary folder that is moved to its place when complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError, UsageError
from exporters import harbor, swebench
from exporters.bundle_writer import BundleWriter, write_bundle
from exporters.item import ExportItem
from taskdb.records import Bundle

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Certificate, Task

FORMATS: Mapping[str, BundleWriter] = {
    "swebench": swebench.write_swebench,
    "harbor": harbor.write_harbor,
}


def is_exportable(task: Task) -> bool:
    """Return whether the formats can carry a task: it has an image and is graded by its lists of tests alone."""
    return bool(task.image) and task.oracle is None


def export_tasks(
    format: str,  # noqa: A002 - the name of the command line option
    tasks: Sequence[Task],
    certificates: Mapping[str, Certificate],
    out: Path,
    services: Services,
    *,
    registry: Mapping[str, str] | None = None,
) -> Bundle:
    """Write `tasks` into the folder `out`.

    Args:
        format: a key of FORMATS.
        tasks: tasks in any order; those that are not exportable are skipped.
        certificates: task id -> certificate, for the tasks that have one.
        out: a folder that is absent, empty, or holds a bundle, which is then replaced. If it holds the same bundle
            already, it is not changed.
        services: provides artifacts and clones; no container runs.
        registry: image -> its reference in a registry, by digest, which the bundle then names.

    Raises:
        UsageError: there is no such format.
        InputError: there are no tasks, or `out` holds other files.
        Transient: the disk is full or not writable.
    """
    if format not in FORMATS:
        raise UsageError(f"there is no format {format!r}", advice=f"formats: {', '.join(FORMATS)}")
    if not tasks:
        raise InputError("there are no tasks to export", advice="`mergemill tasks list` shows the tasks")
    exportable = [task for task in tasks if is_exportable(task)]
    if not exportable:
        kinds = ", ".join(sorted({task.kind.value for task in tasks}))
        raise InputError(f"{format} cannot carry tasks of kind {kinds}: they are not graded by lists of tests alone")
    items = [
        ExportItem(task=task, certificate=certificates.get(task.id), registry_image=(registry or {}).get(task.image))
        for task in sorted(exportable, key=lambda t: t.name)
    ]
    return Bundle(
        format=format,
        tasks=tuple(sorted(task.id for task in exportable)),
        manifest_sha256=write_bundle(format, FORMATS[format], items, out, services),
        out=str(out),
        at=services.clock(),
    )
