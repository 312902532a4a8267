"""The real engine, reduced to a test's own tiny images: pruning must not remove other images."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.images import StoredImage
from mergemill.execution.images.ledger import UsageLedger
from tests.registry import make_tiny_image

HOUR = 3600.0
JUST_NOW = -1.0
"""Hours since the last use of an image that is in use, however long the test takes."""


@dataclass
class TinyEngine:
    """Engine that makes images named like the builders', with a mark in each name; `close` removes them."""

    folder: Path
    mark: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    sandbox: DockerSandbox = field(default_factory=DockerSandbox)

    @property
    def ledger(self) -> UsageLedger:
        return UsageLedger(self.folder / "store")

    def image(self, kind: str, word: str, *, under: str | None = None, size: int = 8000, hours: float = 2) -> str:
        """Make an image that was last used so many hours ago and return its name."""
        name = make_tiny_image(self.sandbox, f"mergemill/{kind}:{word}-{self.mark}", under=under, size=size)
        self.set_last_use(name, hours)
        return name

    def set_last_use(self, name: str, hours: float) -> None:
        """Record in the ledger that the image was last used so many hours ago."""
        self.ledger.touch(name)
        when = time.time() - hours * HOUR
        os.utime(self.ledger.folder / quote(name, safe=""), (when, when))

    @property
    def images(self) -> Any:
        """This object: an image store whose list is limited to the marked images."""
        return self

    def list_images(self, prefix: str) -> list[StoredImage]:
        return [image for image in self.sandbox.images.list_images(prefix) if self.mark in image.name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sandbox.images, name)

    def list_words(self) -> set[str]:
        """Return `kind:word` of the existing images."""
        return {image.name.removeprefix("mergemill/").removesuffix(f"-{self.mark}") for image in self.list_images("")}

    def close(self) -> None:
        for _ in range(3):  # from the top down
            for image in reversed(self.list_images("")):
                self.sandbox.images.remove(image.name)
