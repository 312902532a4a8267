"""Reader of bundles: tasks as records, with the files that they reference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.errors import InputError
from exporters import manifest, task_files
from exporters.build_context import TREE_ARCHIVE
from exporters.item import make_folder_name
from exporters.tree import read_tree
from taskdb import schema_0006
from taskdb.records import Task


@dataclass(frozen=True, kw_only=True)
class BundledTask:
    """One task of a bundle.

    `artifacts`: its patches and its script; `tree_archive`: archive of its base tree; `registry_image`: reference of
    its image in a registry, `HOST/PREFIX/env@sha256:...`, or None.
    """

    task: Task
    registry_image: str | None
    artifacts: tuple[bytes, ...]
    tree_archive: Path

    def read_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of the regular files of the base tree."""
        return read_tree(self.tree_archive)


def read_bundle(folder: Path) -> Iterator[BundledTask]:
    """Yield the tasks of a complete bundle (see `exporters.manifest.check_manifest`) in its order.

    Raises:
        InputError: there is no bundle, a task differs from the manifest, or one of its files is missing.
    """
    content = manifest.read_manifest(folder)
    if content is None:
        raise InputError(f"{folder} holds no {manifest.MANIFEST_NAME} of mergemill")
    by_hash = {digest: folder / path for path, digest in content["files"].items()}
    for row in content["tasks"]:
        yield _read_task(folder, row, content["files"], by_hash)


def _read_task(
    folder: Path, row: Mapping[str, Any], files: Mapping[str, str], by_hash: Mapping[str, Path]
) -> BundledTask:
    name = row.get("name")
    wrong = partial(_make_error, folder, name)
    below = make_folder_name(str(name))
    placed = {Path(path).name: folder / path for path in files if path.startswith(f"{below}/")}
    if task_files.RECORD_FILE not in placed or TREE_ARCHIVE not in placed:
        missing_name = task_files.RECORD_FILE if task_files.RECORD_FILE not in placed else TREE_ARCHIVE
        raise wrong(f"has no {missing_name}", advice="export it again, with this version of mergemill")
    try:
        key, task = _parse_task(json.loads(placed[task_files.RECORD_FILE].read_bytes()))
    except (ValueError, ValidationError) as error:
        raise wrong("has a record that cannot be read") from error
    if key != row.get("id"):
        raise wrong("is not the task whose id the manifest has")
    references = [task.gold_patch, task.test_patch, task.eval_script, task.control_patch]
    hashes = [digest for digest in references if digest]
    if missing := [digest for digest in hashes if digest not in by_hash]:
        raise wrong(f"lacks the file {missing[0][:16]}...")
    return BundledTask(
        task=task,
        artifacts=tuple(by_hash[one].read_bytes() for one in hashes),
        tree_archive=placed[TREE_ARCHIVE],
        registry_image=row.get("registry"),
    )


def _parse_task(body: dict[str, Any]) -> tuple[str, Task]:
    """Return the id under which a bundle lists a task, and the task; bundles of schema 0006 have other names.

    Raises:
        ValueError, ValidationError: the JSON is not that of a task.
    """
    if schema_0006.is_task(body):
        key, body = schema_0006.upgrade_task(body)
        return key, Task.model_validate(body)
    task = Task.model_validate(body)
    return task.id, task


def _make_error(folder: Path, name: object, what: str, *, advice: str = "") -> InputError:
    return InputError(f"{name} in {folder} {what}", advice=advice)
