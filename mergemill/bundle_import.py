"""Import of bundles of mergemill into a database: the very tasks, under the same ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError
from exporters import manifest
from exporters.bundle_reader import has_records, read_records, require_bundle, unpack_content
from mergemill.bundle_contents import require_sound_bundle
from mergemill.services import make_services
from taskdb.images import ImageCopy
from taskdb.record_chains import add_chain
from taskdb.records import Certificate, Record, Task
from taskdb.store import Store

if TYPE_CHECKING:
    from core.config import Settings


@dataclass(frozen=True, kw_only=True)
class ImportResult:
    """Result for one task. `new`: whether the database lacked it; `problem`: why it was not imported, else None."""

    name: str
    id: str
    new: bool
    problem: str | None = None


def is_own_bundle(folder: Path) -> bool:
    """Return whether a folder holds a bundle of mergemill.

    Raises:
        InputError: its manifest is malformed.
    """
    return folder.is_dir() and manifest.read_manifest(folder) is not None


def import_bundle(folder: Path, settings: Settings) -> Iterator[ImportResult]:
    """Add the tasks of a bundle with their records, artifacts and base trees; yield each task.

    Nothing is written unless the whole bundle is sound. Importing it again changes nothing.

    Raises:
        InputError: the bundle has a problem, or is of a version that did not write records.
        Transient: the disk is full, or the database cannot be written.
    """
    require_sound_bundle(folder)
    if not has_records(folder):
        raise InputError(
            f"{folder} has no records of its tasks", advice="export it again, with this version of mergemill"
        )
    services = make_services(settings, engine=False)
    rows = {row["id"]: row for row in require_bundle(folder)["tasks"]}
    unpack_content(folder, services.artifacts, services.clones)
    with Store.open(settings.db, create=True, writes=True) as store:
        chain: dict[str, Record] = {}
        task: Task | None = None
        for record in read_records(folder):
            if task is not None and not isinstance(record, Certificate):
                yield _add_task(store, chain, task, rows[task.id])
                chain, task = {}, None
            chain[record.id] = record
            task = record if isinstance(record, Task) else task
        if task is not None:
            yield _add_task(store, chain, task, rows[task.id])


def _add_task(store: Store, chain: Mapping[str, Record], task: Task, row: Mapping[str, Any]) -> ImportResult:
    """Add one task with the records before it, and the registry that has its image."""
    is_new = not store.get_many(Task, [task.id])
    add_chain(store, chain)
    reference = row.get("registry")
    if isinstance(reference, str) and task.image:
        digest = next((one.image_digest for one in chain.values() if isinstance(one, Certificate)), task.image_digest)
        store.add(ImageCopy(image=task.image, image_digest=digest, reference=reference, at=""))
    return ImportResult(name=task.name, id=task.id, new=is_new)
