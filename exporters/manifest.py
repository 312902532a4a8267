"""The manifest of a bundle: what is in it, where it came from, and the sha256 of every file.

Written last and hashed itself: the sha256 of `manifest.json` names the bundle's whole content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from exporters.item import Item

NAME = "manifest.json"
KIND = "mergemill-bundle"
"""What `kind` says in a manifest of ours."""
_SCHEMA = 1


def our_version() -> str:
    """The version of mergemill that writes."""
    try:
        return version("mergemill")
    except PackageNotFoundError:  # run from a folder without being installed
        return "unknown"


def files_of(folder: Path) -> Iterator[Path]:
    """Every file below a folder, links among them, relative and sorted; the manifest itself left out."""
    found = []
    for here, _, names in os.walk(folder):
        found += [Path(here, name).relative_to(folder) for name in names]
    return iter(sorted(path for path in found if path.as_posix() != NAME))


def file_sha256(path: Path) -> str:
    """Sha256 (hex) of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(format_name: str, items: Sequence[Item], notes: Mapping[str, Sequence[str]], folder: Path) -> bytes:
    """The manifest of a bundle that lies in `folder`.

    Args:
        format_name: its format.
        items: tasks and certificates, in the bundle's order.
        notes: task name -> what differs from the task on purpose, one line each.
        folder: where its files are.
    """
    data = {
        "kind": KIND,
        "schema": _SCHEMA,
        "format": format_name,
        "mergemill": our_version(),
        "tasks": [_task(item, notes.get(item.task.name, ())) for item in items],
        "files": {path.as_posix(): file_sha256(folder / path) for path in files_of(folder)},
    }
    return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode()


def _task(item: Item, notes: Sequence[str]) -> dict[str, Any]:
    task = item.task
    return {
        "name": task.name,
        "id": task.id,
        "source": task.source,
        "license": task.license,
        "image": task.image,
        "image_digest": task.image_digest,
        "registry": item.registry,
        "certificate": item.certificate.id if item.certificate else None,
        "gold_patch": task.gold_patch,
        "test_patch": task.test_patch,
        "twin_patch": task.twin_patch,
        "setup_patch": task.setup_patch,
        "eval_script": task.the_script,
        "notes": list(notes),
    }


def read(folder: Path) -> dict[str, Any] | None:
    """The manifest of the bundle in `folder`, or None when no bundle of ours is there."""
    try:
        data = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError):
        return None
    ours = isinstance(data, dict) and data.get("kind") == KIND
    whole = ours and isinstance(data.get("files"), dict) and isinstance(data.get("tasks"), list)
    return data if whole else None


def check(out: Path) -> list[str]:
    """What is wrong with the bundle in `out`, a line each: files missing, changed or foreign. Empty: it is whole."""
    manifest = read(out)
    if manifest is None:
        return [f"{out} holds no {NAME} of mergemill's"]
    listed: dict[str, str] = manifest["files"]
    present = {path.as_posix() for path in files_of(out)}
    missing = [f"missing: {path}" for path in sorted(listed.keys() - present)]
    changed = [
        f"changed: {path}" for path in sorted(listed.keys() & present) if file_sha256(out / path) != listed[path]
    ]
    return missing + changed + [f"not of the bundle: {path}" for path in sorted(present - listed.keys())]
