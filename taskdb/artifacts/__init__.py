"""Large texts beside the database: content-addressed, zstd-compressed, written once.

An artifact's name is the sha256 of its uncompressed content, so equal logs and patches are stored once. They lie in a
folder of this machine, or in a store that several machines share (`taskdb.artifacts.shared`). In both an artifact
appears under its name whole or not at all: in a folder by an atomic rename.
"""

from __future__ import annotations

from taskdb.artifacts.folder import (
    Artifacts,
    decompress,
    make_name,
    require_writable_folder,
    write_atomically,
)
from taskdb.artifacts.opening import open_artifacts, require_writable_store

__all__ = [
    "Artifacts",
    "decompress",
    "make_name",
    "open_artifacts",
    "require_writable_folder",
    "require_writable_store",
    "write_atomically",
]
