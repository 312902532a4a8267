"""A bundle read back: its tasks as records, with the files they name, from nothing but the bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from exporters import manifest, parts
from exporters.item import folder_of
from exporters.recipe import TREE
from exporters.tree import read_tree
from mergemill.errors import InputError
from taskdb.records import Task


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """One task of a bundle. `artifacts`: its patches and its script; `tree`: the archive of its base tree.

    `registry`: where a registry has its image, `HOST/PREFIX/env@sha256:...`, or None.
    """

    task: Task
    registry: str | None
    artifacts: tuple[bytes, ...]
    tree: Path

    def files(self) -> Iterator[tuple[str, bytes]]:
        """(path, content) of the regular files of the base tree."""
        return read_tree(self.tree)


def read_bundle(folder: Path) -> Iterator[Shipped]:
    """The tasks of a whole bundle (`exporters.manifest.check` says whether it is), in its order.

    Raises:
        InputError: a task is not what the manifest says, or a file of it is not there.
    """
    told = manifest.read(folder)
    if told is None:
        raise InputError(f"{folder} holds no {manifest.NAME} of mergemill's")
    by_hash = {digest: folder / path for path, digest in told["files"].items()}
    for row in told["tasks"]:
        yield _shipped(folder, row, told["files"], by_hash)


def _shipped(folder: Path, row: Mapping[str, Any], files: Mapping[str, str], by_hash: Mapping[str, Path]) -> Shipped:
    name = row.get("name")
    wrong = partial(_wrong, folder, name)
    below = folder_of(str(name))
    placed = {Path(path).name: folder / path for path in files if path.startswith(f"{below}/")}
    if parts.RECORD not in placed or TREE not in placed:
        lacking = parts.RECORD if parts.RECORD not in placed else TREE
        raise wrong(f"has no {lacking}", advice="export it again, with this version of mergemill")
    try:
        task = Task.model_validate(json.loads(placed[parts.RECORD].read_bytes()))
    except (ValueError, ValidationError) as error:
        raise wrong("has a record that cannot be read") from error
    if task.id != row.get("id"):
        raise wrong("is not the task of which the manifest has the id")
    named = [task.gold_patch, task.test_patch, task.eval_script, task.twin_patch]
    hashes = [digest for digest in named if digest]
    if missing := [digest for digest in hashes if digest not in by_hash]:
        raise wrong(f"lacks the file {missing[0][:16]}...")
    return Shipped(
        task=task, artifacts=tuple(by_hash[one].read_bytes() for one in hashes), tree=placed[TREE],
        registry=row.get("registry"),
    )  # fmt: skip


def _wrong(folder: Path, name: object, what: str, *, advice: str = "") -> InputError:
    return InputError(f"{name} in {folder} {what}", advice=advice)
