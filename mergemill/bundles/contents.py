"""Bundles as stores of their own: artifacts and base trees of a bundle, without the database that made it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from backends.clones import CloneStore
from backends.sandbox.container_names import make_folder_prefix
from backends.services import Services
from core.errors import InputError
from core.text import format_count
from exporters import manifest
from exporters.bundle_reader import (
    BundledTask,
    check_content,
    has_records,
    read_bundle,
    require_bundle,
    unpack_content,
)
from exporters.bundle_rows import check_rows
from exporters.image_archive import check_layout, open_image_archive
from mergemill.execution.images.copies import fetch_first_copy
from taskdb.artifacts import Artifacts
from taskdb.records.images import ImageCopy

if TYPE_CHECKING:
    from backends.sandbox.images import ImageStore


class ImagePlace(StrEnum):
    """Where the image of a bundled task was found."""

    NONE = "none"
    """The task has no environment."""
    ENGINE = "engine"
    BUNDLE = "bundle"
    REGISTRY = "registry"
    """It is pulled when it is needed."""
    MISSING = "missing"
    UNKNOWN = "unknown"
    """No engine answered."""


@dataclass(frozen=True, kw_only=True)
class BundleCheck:
    """Result of the check of a bundle. `manifest_sha256` identifies its whole content."""

    bundle: str
    format: str
    manifest_sha256: str
    tasks: int
    ok: bool
    problems: Sequence[str]


def check_bundle(folder: Path) -> BundleCheck:
    """Check hashes, records and rows of a bundle from its own files; needs neither engine nor database.

    Raises:
        InputError: there is no bundle, or its manifest is malformed.
    """
    content = require_bundle(folder)
    problems = manifest.check_manifest(folder)
    if not problems:
        problems = [*(check_content(folder) if has_records(folder) else ()), *check_rows(folder, content)]
        problems += check_layout(folder, content["files"])
        problems = problems or _check_images(folder)
    return BundleCheck(
        bundle=str(folder),
        format=str(content.get("format")),
        tasks=len(content["tasks"]),
        manifest_sha256=manifest.hash_file(folder / manifest.MANIFEST_NAME),
        ok=not problems,
        problems=problems,
    )


def _check_images(folder: Path) -> list[str]:
    """Return a line for each task whose image in the bundle is not the certified image."""
    problems = []
    for bundled in read_bundle(folder):
        if bundled.task.image:
            try:
                open_image_archive(folder, bundled.task.image, bundled.image_digest)
            except InputError as error:
                problems.append(f"{bundled.task.name}: {error}")
    return problems


def require_sound_bundle(folder: Path) -> None:
    """Check a bundle.

    Raises:
        InputError: it has a problem; the first is named.
    """
    check = check_bundle(folder)
    if not check.ok:
        n_more = len(check.problems) - 1
        more = f" and {format_count(n_more, 'more problem')}" if n_more else ""
        raise InputError(f"{folder}: {check.problems[0]}{more}", advice="`mergemill bundle verify` lists all")


@contextmanager
def open_bundle(folder: Path, services: Services) -> Iterator[Services]:
    """Yield the services with a temporary store that holds the artifacts and base trees of a bundle alone.

    Raises:
        InputError: a task differs from the manifest, or a file is missing.
    """
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("bundle"), ignore_cleanup_errors=True) as temporary:
        artifacts = Artifacts(Path(temporary) / "artifacts")
        clones = CloneStore(Path(temporary) / "clones")
        if has_records(folder):
            unpack_content(folder, artifacts, clones)
        else:
            for bundled in read_bundle(folder):
                for content in bundled.artifacts:
                    artifacts.put(content)
        yield replace(services, artifacts=artifacts, clones=clones)


def fetch_image(bundled: BundledTask, folder: Path, services: Services) -> bool:
    """Return whether the image of a task is in the engine; if need be, it is loaded from the bundle or from a registry.

    Raises:
        InputError: the bundle holds another image than the certified image.
        Transient: engine or registry failed.
    """
    if find_image(bundled, folder, services.images) in (ImagePlace.NONE, ImagePlace.ENGINE, ImagePlace.BUNDLE):
        return True
    if not bundled.registry_image:
        return False
    copy = ImageCopy(
        image=bundled.task.image, image_digest=bundled.image_digest, reference=bundled.registry_image, at=""
    )
    return fetch_first_copy(services.images, [copy]) is not None


def find_image(bundled: BundledTask, folder: Path, image_store: ImageStore) -> ImagePlace:
    """Return where the image of a task is; an image that only the bundle holds is loaded into the engine.

    Raises:
        InputError: the bundle holds another image than the certified image.
        Transient: the engine failed.
    """
    task = bundled.task
    if not task.image:
        return ImagePlace.NONE
    if image_store.inspect(task.image) is not None:
        return ImagePlace.ENGINE
    if (chunks := open_image_archive(folder, task.image, bundled.image_digest)) is not None:
        image_store.load_archive(chunks)
        if image_store.inspect(task.image) is not None:
            return ImagePlace.BUNDLE
    return ImagePlace.REGISTRY if bundled.registry_image else ImagePlace.MISSING
