"""Folders and volumes that a container shares with others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A volume of the engine, or a folder of its machine, at a path of a container.

    `source`: name of the volume, which is made where it does not exist, or absolute path of the folder.
    """

    source: str
    target: str
    """Absolute path in the container."""
    read_only: bool = True

    def format_bind(self) -> str:
        """Return the mount as the engine's API takes it."""
        return f"{self.source}:{self.target}:{'ro' if self.read_only else 'rw'}"
