"""Manifest of a bundle: its tasks, their origin, and the sha256 of every file.

It is written last, so that the sha256 of `manifest.json` identifies the complete content of the bundle.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from exporters.item import ExportItem

MANIFEST_NAME = "manifest.json"
MANIFEST_KIND = "mergemill-bundle"
"""Value of `kind` in a manifest of mergemill."""
_SCHEMA = 1


def read_version() -> str:
    """Return the installed version of mergemill."""
    try:
        return version("mergemill")
    except PackageNotFoundError:  # mergemill is not installed
        return "unknown"


def list_files(folder: Path) -> Iterator[Path]:
    """Return an iterator over all files and links below a folder except the manifest, relative and sorted."""
    found = []
    for here, _, names in os.walk(folder):
        found += [Path(here, name).relative_to(folder) for name in names]
    return iter(sorted(path for path in found if path.as_posix() != MANIFEST_NAME))


def hash_file(path: Path) -> str:
    """Return the sha256 (hex) of a file, which is read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build_manifest(
    format_name: str, items: Sequence[ExportItem], notes: Mapping[str, Sequence[str]], folder: Path
) -> bytes:
    """Return the manifest of the bundle in `folder`.

    Args:
        format_name: the bundle's format.
        items: tasks and certificates in the bundle's order.
        notes: task name -> intended differences from the task, one line each.
        folder: folder of the bundle's files.
    """
    data = {
        "kind": MANIFEST_KIND,
        "schema": _SCHEMA,
        "format": format_name,
        "mergemill": read_version(),
        "tasks": [_describe_task(item, notes.get(item.task.name, ())) for item in items],
        "files": {path.as_posix(): hash_file(folder / path) for path in list_files(folder)},
    }
    return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode()


def _describe_task(item: ExportItem, notes: Sequence[str]) -> dict[str, Any]:
    task = item.task
    return {
        "name": task.name,
        "id": task.id,
        "source": task.source,
        "license": task.license,
        "image": task.image,
        "image_digest": task.image_digest,
        "registry": item.registry_image,
        "certificate": item.certificate.id if item.certificate else None,
        "gold_patch": task.gold_patch,
        "test_patch": task.test_patch,
        "control_patch": task.control_patch,
        "setup_patch": task.setup_patch,
        "eval_script": task.require_script(),
        "notes": list(notes),
    }


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of the bundle in `folder`; None when there is no bundle of mergemill."""
    try:
        data = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError):
        return None
    is_bundle = isinstance(data, dict) and data.get("kind") == MANIFEST_KIND
    is_complete = is_bundle and isinstance(data.get("files"), dict) and isinstance(data.get("tasks"), list)
    return data if is_complete else None


def check_manifest(out: Path) -> list[str]:
    """Return the problems of the bundle in `out`, one line each: missing, changed and foreign files. Empty if none."""
    manifest = read_manifest(out)
    if manifest is None:
        return [f"{out} holds no {MANIFEST_NAME} of mergemill"]
    listed: dict[str, str] = manifest["files"]
    present = {path.as_posix() for path in list_files(out)}
    missing = [f"missing: {path}" for path in sorted(listed.keys() - present)]
    changed = [f"changed: {path}" for path in sorted(listed.keys() & present) if hash_file(out / path) != listed[path]]
    return missing + changed + [f"not part of the bundle: {path}" for path in sorted(present - listed.keys())]
