"""Manifests of nested subsets: files of task ids for `--ids`, and another that lists them with their hashes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import make_write_error
from samplers.difficulty.saturation import group_tasks, nest_subsets

DIMENSIONS = ("kind", "language", "source")
"""Columns of tasks by whose values they are divided."""
MANIFEST_NAME = "manifest.json"


def write_subsets(rows: Sequence[Mapping[str, Any]], folder: Path, seed: int = 0) -> list[dict[str, Any]]:
    """Write the subsets of tasks to a folder, and return a row for each file.

    Raises:
        InputError: writing is not permitted.
        Transient: the disk is full.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for (dimension, value), tasks in group_tasks(rows, DIMENSIONS).items():
            for share, subset in nest_subsets(tasks, seed).items():
                name = f"{dimension}-{_make_name(value)}-{share.numerator}-of-{share.denominator}.txt"
                content = "".join(f"{task}\n" for task in subset)
                (folder / name).write_text(content)
                written.append(
                    {
                        "dimension": dimension,
                        "value": value,
                        "share": str(share),
                        "tasks": len(subset),
                        "file": name,
                        "sha256": hashlib.sha256(content.encode()).hexdigest(),
                    }
                )
        (folder / MANIFEST_NAME).write_text(json.dumps({"seed": seed, "subsets": written}, indent=1) + "\n")
    except OSError as error:
        raise make_write_error(f"cannot write to {folder}", error) from error
    return written


def _make_name(value: str) -> str:
    """Return a value as part of a file's name; values that are not names get a hash, so that they stay apart."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", value)[:80]
    return name if name == value else f"{name}-{hashlib.sha256(value.encode()).hexdigest()[:8]}"
