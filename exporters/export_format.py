"""An export format: its writer, and the tasks that it cannot carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exporters.bundle_writer import BundleWriter
from exporters.verifier_files import explain_ungradable

if TYPE_CHECKING:
    from taskdb.records import Task


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """A row of `exporters.FORMATS`.

    `write` writes all items into an empty folder. `explain_exclusion` returns in a single line why the format cannot
    carry a task (and all others like it); None if it can.
    """

    write: BundleWriter
    explain_exclusion: Callable[[Task], str | None]
    write_parquet: BundleWriter | None = None
    """Writes the same and the tasks packed in parquet, where that is optional."""


def exclude_other_oracles(task: Task) -> str | None:
    """Return why a format that has only lists of tests and an image cannot carry a task; None if it can."""
    if reason := explain_ungradable(task):
        return reason
    return f"{task.kind.value} is not graded by lists of tests alone" if task.oracle is not None else None
