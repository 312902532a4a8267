"""Large texts beside the database: content-addressed, zstd-compressed, written once.

An artifact's name is the sha256 of its uncompressed content, so equal logs and patches are stored once. A file
appears under its name by an atomic rename, so an interrupted write leaves no artifact.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from pathlib import Path

import zstandard

from core.errors import InputError, make_write_error


class Artifacts:
    """Folder of artifacts, `AB/CDEF....zst`. Threads and processes may write concurrently."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        """Store `content` and return its hash.

        Raises:
            Transient: the disk is full or not writable.
        """
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if not path.exists():
            write_atomically(path, zstandard.ZstdCompressor(level=6).compress(content), self.folder)
        return digest

    def put_text(self, text: str) -> str:
        """Store a text as UTF-8 and return its hash."""
        return self.put(text.encode(errors="surrogateescape"))

    def get(self, digest: str) -> bytes:
        """Return the content of an artifact.

        Raises:
            InputError: it is missing, damaged or not permitted to be read.
        """
        path = self._path(digest)
        try:
            content = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
        except PermissionError as error:
            advice = "give this user the right to read it"
            raise InputError(f"cannot read {path}: {error.strerror}", advice=advice) from error
        except (OSError, zstandard.ZstdError) as error:
            raise InputError(f"artifact {digest[:12]} is missing or damaged in {self.folder}") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise InputError(f"artifact {digest[:12]} is damaged in {self.folder}")
        return content

    def get_text(self, digest: str) -> str:
        """Return an artifact as text."""
        return self.get(digest).decode(errors="surrogateescape")

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / f"{digest[2:]}.zst"


def require_writable_folder(folder: Path) -> None:
    """Create a folder where there is none, and check that this user may write into it.

    Raises:
        InputError: writing is not permitted.
        Transient: the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise make_write_error(f"cannot write to {folder}", error, advice="free some space") from error


def write_atomically(path: Path, content: bytes, folder: Path) -> None:
    """Write a file atomically. `folder` is named in the error.

    Raises:
        InputError: writing is not permitted.
        Transient: the disk is full.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:  # other users may read it as far as the umask permits
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise make_write_error(
            f"cannot write to {folder}", error, advice="free some space and run the same command again"
        ) from error
