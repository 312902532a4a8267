"""Files of rows that are written whole: until a file is complete, an earlier file of its name stays."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

WriteRow = Callable[[Mapping[str, Any]], object]


def replace_file(path: Path, content: str) -> None:
    """Write a file whole; until it is complete, an earlier file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(content, encoding="utf-8", errors="replace")
    temporary.replace(path)


class JsonLines:
    """Context manager that writes a JSON object per line; the file is there even without rows.

    `portable` is for files that any reader may get: sorted keys and ASCII, as some readers split at all of Python's
    line ends.
    """

    def __init__(self, path: Path, *, portable: bool = False) -> None:
        self._path, self._portable = path, portable
        self._temporary = path.with_name(f".{path.name}.part")
        self.count = 0
        """Number of rows written so far."""

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._temporary.open("w", encoding="utf-8", errors="replace", newline="\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        if kind is None:
            if self._portable:
                self._temporary.chmod(0o644)
            self._temporary.replace(self._path)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        line = json.dumps(row, ensure_ascii=self._portable, sort_keys=self._portable)
        self._file.write(line + "\n")
        self.count += 1


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write all rows to a portable file; they are not held in memory."""
    with JsonLines(path, portable=True) as file:
        for row in rows:
            file.add(row)


@contextmanager
def open_lines(path: Path) -> Iterator[WriteRow]:
    """Yield a function that writes an object as a line; the file has its name once all are written."""
    with JsonLines(path) as lines:
        yield lines.add


def hash_files(folder: Path) -> dict[str, str]:
    """Return path in a folder -> sha256 (hex) of all files below it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
