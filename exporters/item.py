"""What is exported: a task and its certificate."""

from __future__ import annotations

import re
from dataclasses import dataclass

from taskdb.records import Certificate, Task


@dataclass(frozen=True, kw_only=True)
class Item:
    """One task on its way out, with its certificate where it has one."""

    task: Task
    certificate: Certificate | None
    registry: str | None = None
    """Where a registry has the task's image, `HOST/PREFIX/env@sha256:...`."""

    @property
    def image(self) -> str:
        """The image as others are to ask for it: from the registry, where one has it."""
        return self.registry or self.task.image

    @property
    def folder(self) -> str:
        """The task's folder in a bundle and its name with others: letters, digits, `.`, `_` and `-` only."""
        return folder_of(self.task.name)


def folder_of(name: str) -> str:
    """The folder of the task of that name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("-._")
