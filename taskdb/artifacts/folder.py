"""Artifacts in a folder of this machine, and the functions that all stores of artifacts share.

Names, compression, atomic writes.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import zstandard

from core.errors import InputError, make_write_error

_NAME = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})\.zst")


class Artifacts:
    """Folder of artifacts, `AB/CDEF....zst`. Threads and processes may write concurrently."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def place(self) -> str:
        """Where the artifacts are, for messages."""
        return str(self.folder)

    def put(self, content: bytes) -> str:
        """Store `content` and return its hash.

        Raises:
            InputError: writing is not permitted.
            Transient: the disk is full or the store of several machines does not answer.
        """
        digest = hashlib.sha256(content).hexdigest()
        if not self._path(digest).exists():
            self.write_compressed(digest, compress(content))
        return digest

    def put_text(self, text: str) -> str:
        """Store a text as UTF-8 and return its hash."""
        return self.put(text.encode(errors="surrogateescape"))

    def get(self, digest: str) -> bytes:
        """Return the content of an artifact.

        Raises:
            InputError: it is missing, damaged or not permitted to be read.
            Transient: the store of several machines does not answer.
        """
        return decompress(digest, self.read_compressed(digest), self.place)

    def get_text(self, digest: str) -> str:
        """Return an artifact as text."""
        return self.get(digest).decode(errors="surrogateescape")

    def check(self, *, writes: bool) -> None:
        """Check, before anything is done, that artifacts can be read here and, with `writes`, written.

        Raises:
            InputError: this is not permitted, or there is no such place.
            Transient: the disk is full or the store of several machines does not answer.
        """
        if writes:
            require_writable_folder(self.folder)

    def read_compressed(self, digest: str) -> bytes:
        """Return an artifact as it is stored; errors as of `get`, except that damage is not noticed."""
        path = self._path(digest)
        try:
            return path.read_bytes()
        except PermissionError as error:
            advice = "give this user the right to read it"
            raise InputError(f"cannot read {path}: {error.strerror}", advice=advice) from error
        except OSError as error:
            raise make_missing_error(digest, self.place) from error

    def write_compressed(self, digest: str, compressed: bytes) -> None:
        """Store the content that `read_compressed` returned elsewhere; errors as of `put`."""
        write_atomically(self._path(digest), compressed, self.folder)

    def list_digests(self) -> Iterator[str]:
        """Yield the hashes of all artifacts.

        Raises:
            InputError: listing is not permitted, or there is no such place.
            Transient: the store of several machines does not answer.
        """
        yield from filter(None, (parse_name(path.relative_to(self.folder)) for path in self.folder.glob("*/*.zst")))

    def _path(self, digest: str) -> Path:
        return self.folder / make_name(digest)


def make_name(digest: str) -> str:
    """Return the name of an artifact below its folder or URL."""
    return f"{digest[:2]}/{digest[2:]}.zst"


def parse_name(path: Path | str) -> str | None:
    """Return the hash of the artifact with this name, or None for the name of something else."""
    match = _NAME.fullmatch(str(path))
    return match[1] + match[2] if match else None


def compress(content: bytes) -> bytes:
    """Return content as it is stored."""
    return zstandard.ZstdCompressor(level=6).compress(content)


def decompress(digest: str, compressed: bytes, place: str) -> bytes:
    """Return the content of an artifact as it was read from `place`.

    Raises:
        InputError: it is damaged.
    """
    try:
        content = zstandard.ZstdDecompressor().decompressobj().decompress(compressed)
    except zstandard.ZstdError as error:
        raise make_missing_error(digest, place) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise InputError(f"artifact {digest[:12]} is damaged in {place}")
    return content


def make_missing_error(digest: str, place: str) -> InputError:
    """Return the error for an artifact that cannot be read."""
    return InputError(f"artifact {digest[:12]} is missing or damaged in {place}")


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


def write_atomically(path: Path, content: bytes, folder: Path, *, durable: bool = True) -> None:
    """Write a file atomically. `folder` is named in the error; `durable`: whether it must survive a loss of power.

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
                if durable:
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
