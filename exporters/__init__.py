"""Tasks in the formats of others: a folder that needs the task's image and nothing else of the database.

Reading FORMATS is reading what there is; a format writes its files into a folder and says what it had to leave out.
Around that, every bundle is the same: written beside its place and moved there whole, with a manifest of hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from exporters import harbor, swebench
from exporters.bundle import Writer, write_bundle
from exporters.item import Item
from mergemill.errors import InputError, UsageError
from taskdb.records import Bundle

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Certificate, Task

FORMATS: Mapping[str, Writer] = {
    "swebench": swebench.write,
    "harbor": harbor.write,
}


def holds(task: Task) -> bool:
    """Whether the formats can hold a task: it runs in an image, and its lists of tests are what it is graded by."""
    return bool(task.image) and task.oracle is None


def export(
    format: str,  # noqa: A002 - the word of the command line
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
        tasks: what goes in, as far as `holds` says so; the order does not matter.
        certificates: task id -> certificate, for the tasks that have one.
        out: a folder that is not there, is empty, or holds a bundle of ours, which is then replaced. When it holds
            the same bundle already, nothing is touched.
        services: artifacts and clones are read, nothing runs.
        registry: image -> where a registry has it, by digest; the bundle then names that.

    Raises:
        UsageError: no such format.
        InputError: there are no tasks, or `out` holds something else.
        Transient: the disk is full or not writable.
    """
    if format not in FORMATS:
        raise UsageError(f"there is no format {format!r}", advice=f"formats: {', '.join(FORMATS)}")
    if not tasks:
        raise InputError("there are no tasks to export", advice="`mergemill tasks list` shows what there is")
    held = [task for task in tasks if holds(task)]
    if not held:
        kinds = ", ".join(sorted({task.kind.value for task in tasks}))
        raise InputError(f"{format} holds no tasks of kind {kinds}: they are graded by more than lists of tests")
    items = [
        Item(task=task, certificate=certificates.get(task.id), registry=(registry or {}).get(task.image))
        for task in sorted(held, key=lambda t: t.name)
    ]
    digest = write_bundle(format, FORMATS[format], items, out, services)
    return Bundle(
        format=format, tasks=tuple(sorted(task.id for task in held)), manifest_sha256=digest,
        out=str(out), at=services.clock(),
    )  # fmt: skip
