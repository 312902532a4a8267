"""The artifacts of some settings: a folder, or a store that several machines share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from taskdb.artifacts.folder import Artifacts, require_writable_folder

if TYPE_CHECKING:
    from core.settings.storage import StorageSettings

CACHE_FOLDER = "artifact-cache"
"""Folder of the store with copies of the shared artifacts that were read or written on this machine."""


def open_artifacts(storage: StorageSettings) -> Artifacts:
    """Return the artifacts of some settings; nothing is read or written yet.

    Raises:
        MachineError: a package that their URL needs is missing.
    """
    place = storage.artifact_place
    if isinstance(place, Path):
        return Artifacts(place)
    from taskdb.artifacts.shared import SharedArtifacts  # noqa: PLC0415 - a folder needs no fsspec

    return SharedArtifacts(place, storage.store_dir / CACHE_FOLDER)


def require_writable_store(storage: StorageSettings) -> Artifacts:
    """Check that this user may write into the store and its artifacts, and return the artifacts.

    Raises:
        InputError: writing is not permitted, or there is no such place.
        MachineError: a package that the artifacts' URL needs is missing.
        Transient: the disk is full or the store of several machines does not answer.
    """
    require_writable_folder(storage.store_dir)
    artifacts = open_artifacts(storage)
    artifacts.check(writes=True)
    return artifacts
