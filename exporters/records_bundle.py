"""Bundle of a task without the files of any format: the files that every bundle of mergemill has of its tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from exporters.bundle_records import add_records
from exporters.bundle_writer import write_bundle
from exporters.item import ExportItem
from taskdb.records import Task

if TYPE_CHECKING:
    from backends.services import Services

FORMAT = "records"


def write_records_bundle(task: Task, folder: Path, services: Services) -> str:
    """Write the record, artifacts and base tree of a task into `folder`; return the sha256 of the manifest.

    The bundle can be graded, and not be imported, as the records that the task descends from are missing.

    Raises:
        InputError: the base tree is neither kept nor in a clone, or an artifact is missing.
        Transient: the disk is full or not writable.
    """
    item = ExportItem(task=task, certificate=None)
    return write_bundle(FORMAT, add_records(_write_no_files, lambda _: ()), [item], folder, services)


def _write_no_files(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    del folder, services
    deque(items, maxlen=0)
