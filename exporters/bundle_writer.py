"""Atomic writing of bundles: files go to a temporary folder, which is moved to its place when complete."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from core.errors import InputError, Transient
from exporters import manifest
from exporters.item import ExportItem

if TYPE_CHECKING:
    from backends.services import Services


BundleNotes = Mapping[str, Sequence[str]]


class BundleWriter(Protocol):
    """Function of a format: writes all items into an empty folder and returns task name -> notes on changes."""

    def __call__(self, items: Sequence[ExportItem], folder: Path, services: Services) -> BundleNotes:
        """Write the files of the bundle except the manifest."""
        ...


def write_file(path: Path, content: bytes | str, *, executable: bool = False) -> None:
    """Write a file of a bundle and its parent folders; the mode does not depend on the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogateescape"))
    path.chmod(0o755 if executable else 0o644)


def write_bundle(
    format_name: str, writer: BundleWriter, items: Sequence[ExportItem], out: Path, services: Services
) -> str:
    """Write a bundle to `out` and return the sha256 of its manifest. An equal bundle in `out` is not changed.

    Raises:
        InputError: `out` holds files that are no bundle, or two tasks would share a folder.
        Transient: the disk is full or not writable.
    """
    folders = [item.folder for item in items]
    if len(set(folders)) < len(folders):
        raise InputError(
            f"two tasks would share a folder: {', '.join(sorted(f for f in folders if folders.count(f) > 1))}"
        )
    out = out.resolve()
    if out.name == "":
        raise InputError(f"{out} cannot hold a bundle", advice="choose a separate folder")
    _check_target(out)
    partial = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            notes = writer(items, partial, services)
            content = manifest.build_manifest(format_name, items, notes, partial)
            write_file(partial / manifest.MANIFEST_NAME, content)
            _move_bundle(partial, out, content)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise Transient(
            f"cannot write {out}: {error.strerror}", advice="free some space or choose another folder"
        ) from error
    return hashlib.sha256(content).hexdigest()


def _check_target(out: Path) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is not a folder", advice="choose another --out")
    if any(out.iterdir()) and manifest.read_manifest(out) is None:
        raise InputError(f"{out} is not empty and holds no mergemill bundle", advice="choose another --out")


def _move_bundle(partial: Path, out: Path, content: bytes) -> None:
    """Move the finished bundle to its place, unless an equal and complete one is there."""
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        problems = manifest.check_manifest(out) if manifest.read_manifest(out) else []
        foreign = [line.partition(": ")[2] for line in problems if line.startswith("not part of the bundle")]
        same = (out / manifest.MANIFEST_NAME).is_file() and (out / manifest.MANIFEST_NAME).read_bytes() == content
        if same and len(problems) == len(foreign):
            return
        if foreign:  # files of the user, such as results, must not be deleted
            raise InputError(
                f"{out} also holds {foreign[0]}, which is not part of the bundle",
                advice="move it, or choose another --out",
            )
        out.rename(old)
    partial.rename(out)
    shutil.rmtree(old, ignore_errors=True)
