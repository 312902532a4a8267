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
"""A file larger than this is not brought back from a container."""

OWN_FOLDER = "/run/mergemill"
"""Where files that a layer must not keep are put; created by us, so that removing it leaves nothing."""
COMMAND_FILE = f"{OWN_FOLDER}/command"
"""Where a build's command stands."""


def pack(files: Mapping[str, bytes], mode: int = 0o644, *, goes_on: bool = False) -> bytes:
    """A tar of absolute path -> content, owner root; folders are named only below OWN_FOLDER.

    `goes_on`: another tar will follow, so it gets no end.

    Naming a folder in the archive would give an existing one another mode and owner; the engine makes missing ones.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in sorted(_own_folders(files)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
        length = buffer.tell()
    return buffer.getvalue()[: length if goes_on else None]


def _own_folders(files: Iterable[str]) -> set[str]:
    parents = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    return {parent.lstrip("/") for parent in parents if parent == OWN_FOLDER or parent.startswith(OWN_FOLDER + "/")}


def pieces(stream: IO[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """The stream in large pieces (an HTTP client would read a file object line by line)."""
    return iter(lambda: stream.read(size), b"")


class Pieces(io.RawIOBase):
    """The opposite: a readable stream over pieces."""

    def __init__(self, source: Iterable[bytes]) -> None:
        super().__init__()
        self._source = iter(source)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as one piece goes."""
        while not self._rest:
            piece = next(self._source, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def first_file(archive: Iterable[bytes]) -> bytes | None:
    """The content of the archive's first entry when that is a regular file of a bearable size."""
    with tarfile.open(fileobj=io.BufferedReader(Pieces(archive)), mode="r|") as tar:
        entry = tar.next()
        if entry is None or not entry.isreg() or entry.size > MAX_FILE_BYTES:
            return None
        content = tar.extractfile(entry)
        return content.read() if content else None


def files_of(packed: bytes) -> dict[str, bytes]:
    """Absolute path -> content of the regular files of a tar; nothing when it is cut short."""
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as tar:
            found = [(member.name, tar.extractfile(member)) for member in tar if member.isreg()]
            return {f"/{name.lstrip('/')}": content.read() for name, content in found if content}
    except tarfile.TarError:
        return {}


def saved_layers(archive: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    """The layers of a saved image, base first: (diff id, uncompressed tar).

    Reads the archive format of old engines and the OCI layout of new ones; both carry `manifest.json`.
    """
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        manifest = json.load(_member(tar, "manifest.json"))[0]
        diff_ids = json.load(_member(tar, manifest["Config"]))["rootfs"]["diff_ids"]
        for diff_id, name in zip(diff_ids, manifest["Layers"], strict=True):
            layer = _member(tar, name)
            packed = layer.read(2) == b"\x1f\x8b"
            layer.seek(0)
            yield diff_id, cast("IO[bytes]", gzip.GzipFile(fileobj=layer)) if packed else layer


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    # extractfile follows the links by which old engines name a layer that they have written already
    content = tar.extractfile(name)
    if content is None:
        raise tarfile.ReadError(f"{name} is no file in the saved image")
    return content


def script(command: Sequence[str], env: Mapping[str, str], files: Mapping[str, bytes] | tuple[()]) -> bytes:
    """The shell script that runs `command` with `env` and removes itself and `files`."""
    exports = [f"export {key}={shlex.quote(value)}" for key, value in env.items()]
    gone = shlex.join(["rm", "-rf", OWN_FOLDER, *files])
    return "\n".join([*exports, shlex.join(command), "code=$?", f"{gone} || exit 70", "exit $code", ""]).encode()
