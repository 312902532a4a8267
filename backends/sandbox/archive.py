"""Tar streams in and out of containers and images."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import IO, cast

MAX_FILE_BYTES = 64 * 1024 * 1024
"""A larger file is not collected from a container."""

PRIVATE_FOLDER = "/run/mergemill"
"""Folder of files that must not be in a layer. It is created here, so that removing it leaves no trace."""
COMMAND_FILE = f"{PRIVATE_FOLDER}/command"
"""Script of a build."""


def build_tar(files: Mapping[str, bytes], mode: int = 0o644, *, is_continued: bool = False) -> bytes:
    """Return a tar of absolute path -> content, owned by root, with folder entries only below PRIVATE_FOLDER.

    A folder entry would change mode and owner of an existing folder; the engine creates missing folders.

    Args:
        files: absolute path -> content.
        mode: mode of each file.
        is_continued: another tar follows, so the end-of-archive mark is omitted.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in sorted(_find_private_folders(files)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
        length = buffer.tell()
    return buffer.getvalue()[: length if is_continued else None]


def _find_private_folders(files: Iterable[str]) -> set[str]:
    parents = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    return {
        parent.lstrip("/") for parent in parents if parent == PRIVATE_FOLDER or parent.startswith(PRIVATE_FOLDER + "/")
    }


def read_chunks(stream: IO[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """Yield the stream in large chunks (an HTTP client would read a file object line by line)."""
    return iter(lambda: stream.read(size), b"")


class ChunkReader(io.RawIOBase):
    """Readable stream over chunks: the opposite of `read_chunks`."""

    def __init__(self, source: Iterable[bytes]) -> None:
        super().__init__()
        self._source = iter(source)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from a chunk."""
        while not self._rest:
            chunk = next(self._source, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def extract_first_file(archive: Iterable[bytes]) -> bytes | None:
    """Return the content of the archive's first entry; None unless it is a regular file of at most MAX_FILE_BYTES."""
    with tarfile.open(fileobj=io.BufferedReader(ChunkReader(archive)), mode="r|") as tar:
        entry = tar.next()
        if entry is None or not entry.isreg() or entry.size > MAX_FILE_BYTES:
            return None
        content = tar.extractfile(entry)
        return content.read() if content else None


def extract_files(tar_bytes: bytes) -> dict[str, bytes]:
    """Return absolute path -> content of the regular files of a tar; empty when the tar is truncated."""
    try:
        with tarfile.open(fileobj=io.BytesIO(tar_bytes), mode="r:") as tar:
            members = [(member.name, tar.extractfile(member)) for member in tar if member.isreg()]
            return {f"/{name.lstrip('/')}": content.read() for name, content in members if content}
    except tarfile.TarError:
        return {}


def read_saved_layers(archive: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the layers of a saved image, base first: (diff id, uncompressed tar).

    Both the archive format of old engines and the OCI layout of new engines contain `manifest.json`.
    """
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        manifest = json.load(_open_member(tar, "manifest.json"))[0]
        diff_ids = json.load(_open_member(tar, manifest["Config"]))["rootfs"]["diff_ids"]
        for diff_id, name in zip(diff_ids, manifest["Layers"], strict=True):
            layer = _open_member(tar, name)
            is_gzip = layer.read(2) == b"\x1f\x8b"
            layer.seek(0)
            yield diff_id, cast("IO[bytes]", gzip.GzipFile(fileobj=layer)) if is_gzip else layer


def _open_member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    # extractfile follows links, which old engines write for a layer that is in the archive already
    content = tar.extractfile(name)
    if content is None:
        raise tarfile.ReadError(f"{name} is not a file of the saved image")
    return content


def build_script(command: Sequence[str], env: Mapping[str, str], files: Mapping[str, bytes] | tuple[()]) -> bytes:
    """Return a shell script that runs `command` with `env` and removes itself and `files`."""
    exports = [f"export {key}={shlex.quote(value)}" for key, value in env.items()]
    remove = shlex.join(["rm", "-rf", PRIVATE_FOLDER, *files])
    return "\n".join([*exports, shlex.join(command), "code=$?", f"{remove} || exit 70", "exit $code", ""]).encode()
