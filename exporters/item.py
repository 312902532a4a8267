"""Exported item: a task and its certificate."""

from __future__ import annotations

import re
from dataclasses import dataclass

from taskdb.records import Certificate, Task


@dataclass(frozen=True, kw_only=True)
class ExportItem:
    """One task to export, with its certificate where it has one."""

    task: Task
    certificate: Certificate | None
    registry_image: str | None = None
    """Reference of the task's image in a registry, `HOST/PREFIX/env@sha256:...`."""

    @property
    def image(self) -> str:
        """Image reference for users of the bundle: that of the registry, where there is one."""
        return self.registry_image or self.task.image

    @property
    def folder(self) -> str:
        """Folder of the task in a bundle and its name in other tools: letters, digits, `.`, `_` and `-` only."""
        return make_folder_name(self.task.name)


def make_folder_name(name: str) -> str:
    """Return the folder name for a task's name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("-._")
