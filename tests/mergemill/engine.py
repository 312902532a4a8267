"""The real engine, of which a test sees its own tiny images only: pruning must not meet anybody else's."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from backends.sandbox.base import Stored
from backends.sandbox.docker import DockerSandbox
from mergemill.images.ledger import Ledger
from tests.registry import tiny_image

HOUR = 3600.0
JUST_NOW = -1.0
"""Hours since an image was used that was just used, however long the test takes."""


@dataclass
class TinyEngine:
    """Makes images named as the builders name theirs, with a mark in each name; those are gone after `close`."""

    folder: Path
    mark: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    sandbox: DockerSandbox = field(default_factory=DockerSandbox)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "store")

    def image(self, kind: str, word: str, *, under: str | None = None, size: int = 8000, hours: float = 2) -> str:
        """Make an image that was last used so many hours ago; its name."""
        name = tiny_image(self.sandbox, f"mergemill/{kind}:{word}-{self.mark}", under=under, size=size)
        self.used(name, hours)
        return name

    def used(self, name: str, hours: float) -> None:
        """Let the ledger say that the image was last used so many hours ago."""
        self.ledger.touch(name)
        when = time.time() - hours * HOUR
        os.utime(self.ledger.folder / quote(name, safe=""), (when, when))

    def inventory(self, prefix: str) -> list[Stored]:
        return [image for image in self.sandbox.inventory(prefix) if self.mark in image.name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sandbox, name)

    def words(self) -> set[str]:
        """`kind:word` of the images that are there."""
        return {image.name.removeprefix("mergemill/").removesuffix(f"-{self.mark}") for image in self.inventory("")}

    def close(self) -> None:
        for _ in range(3):  # from the top down
            for image in reversed(self.inventory("")):
                self.sandbox.remove_image(image.name)
