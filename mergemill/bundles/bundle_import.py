"""Import of bundles of mergemill into a database: the very tasks, under the same ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError, MachineError
from exporters import manifest
from exporters.bundle_reader import has_records, read_bundle, read_records, unpack_content
from mergemill.bundles.contents import ImagePlace, find_image, require_sound_bundle
from mergemill.execution.services import make_services
from taskdb.queries.lineages import add_lineage
from taskdb.records import Certificate, Record, Task
from taskdb.records.images import ImageCopy
from taskdb.store import Store

if TYPE_CHECKING:
    from backends.services import Services
    from core.config import Settings
    from exporters.bundle_reader import BundledTask


@dataclass(frozen=True, kw_only=True)
class ImportResult:
    """Result for a task. `new`: whether the database lacked it; `image`: where its image is now."""

    name: str
    id: str
    new: bool
    image: ImagePlace
    problem: str | None = None
    """Why it was not imported, else None."""


def is_own_bundle(folder: Path) -> bool:
    """Return whether a folder holds a bundle of mergemill.

    Raises:
        InputError: its manifest is malformed.
    """
    return folder.is_dir() and manifest.read_manifest(folder) is not None


def import_bundle(folder: Path, settings: Settings) -> Iterator[ImportResult]:
    """Add the tasks of a bundle with their records, artifacts, base trees and images; yield each task.

    Nothing is written unless the whole bundle is sound. Importing it again changes nothing. Images that the bundle
    holds and the engine lacks are loaded; those in a registry are pulled when they are needed.

    Raises:
        InputError: the bundle has a problem, or is of a version that did not write records.
        Transient: the disk is full, the engine failed, or the database cannot be written.
    """
    require_sound_bundle(folder)
    if not has_records(folder):
        raise InputError(
            f"{folder} has no records of its tasks", advice="export it again, with this version of mergemill"
        )
    services = make_services(settings, engine=False)
    bundled = {bundled_task.task.id: bundled_task for bundled_task in read_bundle(folder)}
    unpack_content(folder, services.artifacts, services.clones)
    with Store.open(settings.storage.db, create=True, writes=True) as store:
        finder = _ImageFinder(folder, services)
        lineage: dict[str, Record] = {}
        task: Task | None = None
        for record in read_records(folder):
            if task is not None and not isinstance(record, Certificate):
                yield _add_task(store, lineage, bundled[task.id], finder)
                lineage, task = {}, None
            lineage[record.id] = record
            task = record if isinstance(record, Task) else task
        if task is not None:
            yield _add_task(store, lineage, bundled[task.id], finder)


class _ImageFinder:
    """Finder of the images of a bundle's tasks; each is looked for once."""

    def __init__(self, folder: Path, services: Services) -> None:
        self._folder = folder
        self._images = services.images
        self._found: dict[str, ImagePlace] = {}

    def find(self, bundled: BundledTask) -> ImagePlace:
        """Return where the image of a task is, loaded from the bundle if need be.

        Raises:
            Transient: the engine failed.
        """
        image = bundled.task.image
        if image not in self._found:
            try:
                self._found[image] = find_image(bundled, self._folder, self._images)
            except MachineError:
                self._found[image] = ImagePlace.UNKNOWN
        return self._found[image]


def _add_task(store: Store, lineage: Mapping[str, Record], bundled: BundledTask, finder: _ImageFinder) -> ImportResult:
    """Add one task with the records before it, and the registry that has its image."""
    task = bundled.task
    is_new = not store.get_many(Task, [task.id])
    add_lineage(store, lineage)
    if bundled.registry_image and task.image:
        copy = ImageCopy(image=task.image, image_digest=bundled.image_digest, reference=bundled.registry_image, at="")
        store.add(copy)
    return ImportResult(name=task.name, id=task.id, new=is_new, image=finder.find(bundled))
