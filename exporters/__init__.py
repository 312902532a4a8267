"""Export of tasks in the formats of other tools: a bundle needs the task's image and nothing else of the database.

FORMATS has the formats of all modules of `exporters.formats`. A format writes its files into a folder, returns notes on
what it could not carry, and explains which tasks it cannot carry at all. The rest is the same for all bundles: a
manifest of hashes, and a temporary folder that is moved to its place when complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError, UsageError
from exporters.bundle_records import LoadLineage, add_records
from exporters.bundle_writer import BundleWriter, write_bundle
from exporters.export_format import ExportFormat
from exporters.formats import load_formats
from exporters.image_layout import add_images
from exporters.item import ExportItem
from exporters.tree import TreeArchives
from taskdb.records import Bundle

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Certificate, Task

FORMATS: Mapping[str, ExportFormat] = load_formats()
"""Name of the format -> its row."""


@dataclass(frozen=True, kw_only=True)
class ExportResult:
    """A bundle, the tasks that its format cannot carry, and where its images are."""

    bundle: Bundle
    excluded: Counter[tuple[str, str]]
    """(kind, reason) -> number of tasks."""
    n_images: int
    n_local_images: int
    """Images that are neither in the bundle nor in a registry."""


def export_items(
    format: str,  # noqa: A002 - the name of the command line option
    items: Iterable[ExportItem],
    out: Path,
    services: Services,
    *,
    with_images: bool = False,
    with_parquet: bool = False,
    load_lineage: LoadLineage | None = None,
) -> ExportResult:
    """Write items into the folder `out`, in sequence: memory does not grow with their number.

    Args:
        format: a key of FORMATS.
        items: items in the order of their tasks' names; those that the format cannot carry are skipped.
        out: a folder that is absent, empty, or holds a bundle, which is then replaced. If it holds the same bundle
            already, it is not changed.
        services: services that provide artifacts, clones and images. Formats whose harness grades in a single container
            read each image once, in a container of it.
        with_images: whether the bundle holds the images as well (`exporters.image_layout`).
        with_parquet: whether it holds the tasks packed in parquet as well, where the format has that option.
        load_lineage: function that returns the records that a task descends from, with which another database can
            import it; without it the bundle cannot be imported.

    Raises:
        UsageError: there is no such format, or it has no such option.
        InputError: there are no items, `out` holds other files, or an image is not the certified image.
        Transient: the disk is full or not writable.
    """
    writer = _find_writer(format, with_parquet=with_parquet)
    writer = add_images(writer) if with_images else writer
    if load_lineage is not None:
        writer = add_records(writer, load_lineage)
    passed = _ItemFilter(format)
    digest = write_bundle(format, writer, passed.iterate(items), out, services)
    bundle = Bundle(
        format=format, tasks=tuple(sorted(passed.ids)), manifest_sha256=digest, out=str(out), at=services.clock()
    )
    return ExportResult(
        bundle=bundle,
        excluded=passed.excluded,
        n_images=len(passed.images),
        n_local_images=0 if with_images else len(passed.images) - sum(passed.images.values()),
    )


def _find_writer(format_name: str, *, with_parquet: bool) -> BundleWriter:
    """Return the writer of a format; raise UsageError where there is none."""
    if format_name not in FORMATS:
        raise UsageError(f"there is no format {format_name!r}", advice=f"formats: {', '.join(FORMATS)}")
    writer = FORMATS[format_name].write_parquet if with_parquet else FORMATS[format_name].write
    if writer is None:
        raise UsageError(f"{format_name} has no parquet option", advice="--parquet is for harbor")
    return writer


class _ItemFilter:
    """Items that a format can carry, and the facts that an export has to report about all."""

    def __init__(self, format_name: str) -> None:
        self._format = format_name
        self.excluded: Counter[tuple[str, str]] = Counter()
        self.ids: list[str] = []
        self.images: dict[str, bool] = {}
        """Image -> whether it is in a registry."""
        self._trees = TreeArchives()

    def iterate(self, items: Iterable[ExportItem]) -> Iterator[ExportItem]:
        """Yield the items that the format can carry; raise InputError at the end when there was none."""
        explain = FORMATS[self._format].explain_exclusion
        for item in items:
            task = item.task
            if reason := explain(task):
                self.excluded[task.kind.value, reason] += 1
                continue
            self.ids.append(task.id)
            if task.image:
                self.images[task.image] = item.registry_image is not None
            yield replace(item, trees=self._trees)
        if not self.ids:
            if not self.excluded:
                raise InputError("there are no tasks to export", advice="`mergemill tasks list` shows the tasks")
            reasons = "; ".join(sorted({reason for _, reason in self.excluded}))
            raise InputError(f"{self._format} can carry none of the tasks: {reasons}")


def export_tasks(
    format: str,  # noqa: A002 - the name of the command line option
    tasks: Sequence[Task],
    certificates: Mapping[str, Certificate],
    out: Path,
    services: Services,
    *,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    with_images: bool = False,
    with_parquet: bool = False,
) -> Bundle:
    """Write tasks that are in memory, in any order; see `export_items`.

    `certificates`: task id -> certificate, for the tasks that have a certificate; `facts`: task id -> its row of the
    view `tasks`, where there is a database.
    """
    items = (
        ExportItem(task=task, certificate=certificates.get(task.id), facts=(facts or {}).get(task.id, {}))
        for task in sorted(tasks, key=lambda task: task.name)
    )
    return export_items(format, items, out, services, with_images=with_images, with_parquet=with_parquet).bundle
