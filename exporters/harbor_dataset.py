"""Data-set files of a Harbor bundle: registry.json, dataset.toml with digests, and parquet with packed tasks.

The digest of a task is that of Harbor's publisher: the sha256 of lines `PATH<NUL>SHA256` over its files, sorted.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pyarrow as pa
import tomli_w

from exporters.manifest import FileHasher
from training_data.parquet import ParquetShards

ORGANIZATION = "mergemill"
"""First part of the names of data set and tasks."""
DATASET_NAME = "tasks"
DESCRIPTION = "Verified software tasks; manifest.json has the sources, licences and certificates."
PARQUET_SCHEMA = pa.schema([("path", pa.string()), ("task_binary", pa.binary())])
"""Columns: name of the task's folder, and the folder as a .tar.gz."""


class DatasetWriter:
    """Context manager that takes the folders of tasks, and writes the files that describe them all when it ends.

    Args:
        folder: folder of the bundle.
        with_parquet: whether the tasks are also packed into `data/SPLIT-00000-of-0000N.parquet`.
    """

    def __init__(self, folder: Path, *, with_parquet: bool) -> None:
        self._folder, self._with_parquet = folder, with_parquet
        self._version = hashlib.sha256()
        self._shards: dict[str, ParquetShards] = {}
        self._hasher = FileHasher()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._entries = self._stack.enter_context(tempfile.TemporaryFile("w+", encoding="ascii", dir=self._folder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_dataset()
                self._write_registry()
        finally:
            self._stack.__exit__(kind, error, trace)

    def add(self, name: str, split: str) -> None:
        """Add the finished folder of a task."""
        folder = self._folder / name
        files = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda p: _get_path(p, folder))
        digest = compute_digest((_get_path(path, folder), self._hasher.hash(path)) for path in files)
        self._version.update(digest.encode())
        self._entries.write(f"{name} {digest}\n")
        if self._with_parquet:
            if split not in self._shards:
                shards = ParquetShards(self._folder / "data" / split, PARQUET_SCHEMA, numbered=True)
                self._shards[split] = self._stack.enter_context(shards)
            self._shards[split].add({"path": name, "task_binary": pack_folder(files, folder)})

    def _read_entries(self) -> Iterator[tuple[str, str]]:
        """Yield folder and digest (64 hexadecimal digits) of each task."""
        self._entries.seek(0)
        for line in self._entries:
            name, digest = line.split()
            yield name, digest

    def _compute_version(self) -> str:
        """Return a version that depends on the content alone."""
        return self._version.hexdigest()[:12]

    def _write_dataset(self) -> None:
        name = f"{ORGANIZATION}/{DATASET_NAME}"
        dataset = {"name": name, "version": self._compute_version(), "description": DESCRIPTION}
        with _open_text(self._folder / "dataset.toml") as file:
            file.write(tomli_w.dumps({"schema_version": "1.0", "dataset": dataset}))
            for folder, digest in self._read_entries():
                task = {"name": f"{ORGANIZATION}/{folder}", "digest": f"sha256:{digest}"}
                file.write(f"\n[[tasks]]\n{tomli_w.dumps(task)}")

    def _write_registry(self) -> None:
        """Write the registry of a data set; its paths are relative to the bundle."""
        head = {
            "name": f"{ORGANIZATION}-{DATASET_NAME}",
            "version": self._compute_version(),
            "description": DESCRIPTION,
        }
        with _open_text(self._folder / "registry.json") as file:
            file.write("[\n {" + "".join(f"\n  {json.dumps(key)}: {json.dumps(head[key])}," for key in head))
            file.write('\n  "tasks": [')
            end = ""
            for folder, _ in self._read_entries():
                task = {"name": f"{ORGANIZATION}/{folder}", "path": folder}
                file.write(f"{end}\n   {json.dumps(task)}")
                end = ","
            file.write("\n  ]\n }\n]\n")


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield file
    path.chmod(0o644)


def compute_digest(files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of a task's files, given as (path in its folder, sha256) and sorted."""
    hasher = hashlib.sha256()
    for path, digest in files:
        hasher.update(f"{path}\0{digest}\n".encode())
    return hasher.hexdigest()


def pack_folder(files: Sequence[Path], folder: Path) -> bytes:
    """Return files as a .tar.gz with paths from `folder`; equal files give equal bytes."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in files:
            member = tarfile.TarInfo(_get_path(path, folder))
            member.size, member.mode = path.stat().st_size, path.stat().st_mode & 0o777
            with path.open("rb") as content:
                tar.addfile(member, content)
    return raw.getvalue()


def _get_path(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()
