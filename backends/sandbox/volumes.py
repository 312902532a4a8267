"""Volume store protocol: folders of an engine that outlive containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class StoredVolume:
    """Volume of an engine.

    `modified_at`: ISO time at which its top folder was changed, or the volume made, by engine; empty if unknown.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    modified_at: str = ""


class VolumeStore(Protocol):
    """Volumes of an engine. Methods raise `core.errors.Transient` where it cannot be reached or its disk is full."""

    def create(self, name: str, labels: Mapping[str, str]) -> None:
        """Make a volume; nothing happens where it exists."""
        ...

    def list_volumes(self, prefix: str) -> list[StoredVolume]:
        """Return the volumes whose names begin so, sorted by name."""
        ...

    def remove(self, name: str) -> bool:
        """Remove a volume; return False where there is none, or a container uses it."""
        ...
