"""Files of rows that are written whole: until a file is complete, an earlier one of its name stays."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WriteRow = Callable[[Mapping[str, Any]], object]


def replace_file(path: Path, content: str) -> None:
    """Write a file whole; until it is complete, an earlier one stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(content, encoding="utf-8", errors="replace")
    temporary.replace(path)


@contextmanager
def open_lines(path: Path) -> Iterator[WriteRow]:
    """Yield a function that writes an object as a line; the file has its name once all are written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("w", encoding="utf-8", errors="replace") as lines:
        yield lambda row: lines.write(json.dumps(row, ensure_ascii=False) + "\n")
        lines.flush()
        os.fsync(lines.fileno())
    temporary.replace(path)


def hash_files(folder: Path) -> dict[str, str]:
    """Return path in a folder -> sha256 (hex) of all files below it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
