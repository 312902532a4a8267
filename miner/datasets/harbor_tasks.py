"""Harbor's task folders: `task.toml`, `instruction.md`, `solution/`, `tests/`.

A folder holds how a task is graded, not which change it comes from. Those made from SWE-bench's fields hold their row
in `tests/config.json`, those of mergemill in `[metadata]` and patch files; others cannot be rebuilt from a history.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.toml import parse_toml
from miner.datasets.rows import Row

MAX_BYTES = 256 << 20
"""Size of a file that is read."""


def read_tasks(path: Path) -> Iterator[tuple[str, Row | InputError]]:
    """Yield the folders of tasks below `path`, or `path` itself, sorted; each with its row or why there is none.

    Raises:
        InputError: there is no folder of a task.
    """
    if not path.is_dir():
        raise InputError(f"{path} is not a folder", advice="harbor takes a folder of task folders")
    folders = [path] if (path / "task.toml").exists() else sorted(child for child in path.iterdir() if child.is_dir())
    task_folders = [folder for folder in folders if (folder / "task.toml").exists()]
    if not task_folders:
        raise InputError(f"{path} has no folder with a task.toml")
    for folder in task_folders:
        try:
            yield str(folder), _read_task(folder)
        except (KeyError, TypeError, ValueError, RecursionError, OSError) as error:
            yield str(folder), InputError(f"{folder}: a file is missing or malformed: {str(error)[:200]!r}")
        except InputError as error:
            yield str(folder), InputError(f"{folder}: {error}")


def _read_task(folder: Path) -> Row:
    row = folder / "tests" / "config.json"
    if row.exists():
        data = json.loads(_read(row, folder))
        if isinstance(data, dict) and {"instance_id", "base_commit", "patch"} <= data.keys():
            return data
    metadata: dict[str, Any] = parse_toml(_read(folder / "task.toml", folder)).get("metadata", {})
    patches = [folder / "solution" / "gold.patch", folder / "tests" / "test.patch"]
    if "base_commit" not in metadata or not all(patch.exists() for patch in patches):
        raise InputError("neither tests/config.json nor [metadata] and patch files name the change it comes from")
    if (folder / "tests" / "setup.patch").exists():
        raise InputError("its tree is not that of a commit; import the bundle as a whole")
    return {
        # As JSON has no dates.
        **json.loads(json.dumps(metadata, default=str)),
        "instance_id": metadata.get("instance_id", folder.name),
        "patch": _read(patches[0], folder),
        "test_patch": _read(patches[1], folder),
        "problem_statement": _read(folder / "instruction.md", folder),
    }


def _read(path: Path, folder: Path) -> str:
    """Return the text of a file of a task folder.

    Raises:
        InputError: it is a link, no regular file, or too large.
    """
    if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{path.name} is a link")
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise InputError(f"{path.name} is not a file that can be read")
    return path.read_text(encoding="utf-8", errors="surrogateescape")
