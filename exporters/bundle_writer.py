"""Atomic writing of bundles: files go to a temporary folder, which is moved to its place when complete."""

from __future__ import annotations

import filecmp
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from core.errors import InputError, make_write_error
from core.text import format_count
from exporters import manifest
from exporters.item import ExportItem

if TYPE_CHECKING:
    from backends.services import Services


RESERVED_FOLDERS = frozenset(
    {"images", "data", "resources_servers", "mergemill_tasks", "mergemill_inspect", manifest.MANIFEST_NAME}
)
"""Names in a bundle that belong to no task."""

CARD_NAME = "README.md"
NOT_UTF8_NOTE = "skipped: a patch is not UTF-8, which this format cannot carry"
"""Note for a task that a format leaves out because its rows hold patches as text."""


class BundleWriter(Protocol):
    """Function of a format: writes all items into an empty folder.

    `items` can be iterated once, in the order of their names, and may be more than memory holds. The function keeps no
    item when it takes the next, and has added to its notes by then the parts that the format cannot carry.
    """

    def __call__(self, items: Iterable[ExportItem], folder: Path, services: Services) -> None:
        """Write the files of the bundle except the manifest."""
        ...


def write_file(path: Path, content: bytes | str, *, executable: bool = False) -> None:
    """Write a file of a bundle and its parent folders; the mode does not depend on the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogateescape"))
    path.chmod(0o755 if executable else 0o644)


def write_bundle(
    format_name: str, writer: BundleWriter, items: Iterable[ExportItem], out: Path, services: Services
) -> str:
    """Write a bundle to `out` and return the sha256 of its manifest. An equal bundle in `out` is not changed.

    Items are taken in sequence, in the order of their names.

    Raises:
        InputError: `out` holds files that are not bundle, a task has an empty name or a name with control characters,
            or two tasks would share a folder.
        Transient: the disk is full or not writable.
    """
    out = out.resolve()
    if out.name == "":
        raise InputError(f"{out} cannot hold a bundle", advice="choose a separate folder")
    _check_target(out)
    partial = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            with manifest.ManifestWriter(format_name, partial) as description:
                warnings: Counter[str] = Counter()
                writer(description.describe(_check_items(items, partial, warnings)), partial, services)
                _add_warnings(partial / CARD_NAME, warnings)
                digest = description.finish()
            _move_bundle(partial, out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise make_write_error(
            f"cannot write {out}", error, advice="free some space or choose another folder"
        ) from error
    return digest


def _add_warnings(card: Path, warnings: Counter[str]) -> None:
    """Add the warnings about tasks to the card of a bundle, where its format has one."""
    if not warnings or not card.is_file():
        return
    lines = [f"- {format_count(number, 'task')}: {warning}" for warning, number in sorted(warnings.items())]
    write_file(card, "\n".join([card.read_text().rstrip("\n"), "", "## Warnings", "", *lines, ""]))


def _check_items(items: Iterable[ExportItem], folder: Path, warnings: Counter[str]) -> Iterator[ExportItem]:
    """Yield the items, and count the notes that they have before a format adds its own.

    Raises:
        InputError: the bundle in `folder` cannot hold the next item.
    """
    for item in items:
        warnings.update(item.notes)
        if not manifest.is_usable_name(item.task.name):
            raise InputError(f"a task is named {ascii(item.task.name)[:200]}, which no bundle can hold")
        if item.folder in RESERVED_FOLDERS:
            raise InputError(f"no task can be named {item.folder}: bundles have a folder of that name")
        if (folder / item.folder).exists():  # a file system, unlike a set of names, takes no memory
            raise InputError(f"two tasks would share a folder: {item.folder}")
        yield item


def _check_target(out: Path) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is not a folder", advice="choose another --out")
    if any(out.iterdir()) and manifest.read_manifest(out) is None:
        raise InputError(f"{out} is not empty and holds no mergemill bundle", advice="choose another --out")


def _move_bundle(partial: Path, out: Path) -> None:
    """Move the finished bundle to its place, unless an equal and complete bundle is there."""
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        is_bundle = (out / manifest.MANIFEST_NAME).is_file()
        problems = manifest.check_manifest(out) if is_bundle else []
        foreign = [line.partition(": ")[2] for line in problems if line.startswith("not part of the bundle")]
        same = is_bundle and filecmp.cmp(out / manifest.MANIFEST_NAME, partial / manifest.MANIFEST_NAME, shallow=False)
        if same and len(problems) == len(foreign):
            return
        if foreign:  # files of the user, such as results, must not be deleted
            raise InputError(
                f"{out} also holds {foreign[0]}, which is not part of the bundle",
                advice="move it, or choose another --out",
            )
        out.rename(old)
    try:
        partial.rename(out)
    except OSError:
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)
