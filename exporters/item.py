"""Exported item: a task, its certificate, and the facts that the database knows about it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exporters.tree import TreeArchives
from taskdb.records import Certificate, Task

MAX_FOLDER_NAME = 200
"""Characters of the longest folder name; a longer name is cut and gets a hash."""


@dataclass(frozen=True, kw_only=True)
class ExportItem:
    """A task to export, with its certificate where any."""

    task: Task
    certificate: Certificate | None
    registry_image: str | None = None
    """Reference of the task's image in a registry, `HOST/PREFIX/env@sha256:...`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Row of the view `tasks`, empty where there is no database; formats use `exporters.facts.build_facts`."""
    trees: TreeArchives = field(default_factory=TreeArchives, compare=False)
    """Archives of base trees in the bundle, which its items share."""
    canary: str = ""
    """Text by which the task's files are recognised in training data; empty where it is none of a benchmark."""
    notes: list[str] = field(default_factory=list, compare=False)
    """Warnings about the task, and intended differences from it, which a format adds before it takes the next item."""

    @property
    def image(self) -> str:
        """Image reference for users of the bundle: that of the registry, where any."""
        return self.registry_image or self.task.image

    @property
    def folder(self) -> str:
        """Folder of the task in a bundle and its name in other tools: letters, digits, `.`, `_` and `-` only."""
        return make_folder_name(self.task.name)


def make_folder_name(name: str) -> str:
    """Return the folder name for a task's name: a name that every file system and every tool accepts."""
    folder = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("-._")
    folder = re.sub(r"\.{2,}", ".", folder).rstrip(".") or "task"
    if len(folder) <= MAX_FOLDER_NAME:
        return folder
    return f"{folder[: MAX_FOLDER_NAME - 17]}-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:16]}"
