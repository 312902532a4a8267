"""Releases of a language that some Debian releases have themselves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from languages.base import Release


@dataclass(frozen=True, kw_only=True)
class DebianReleases:
    """Facts that the releases of a language share."""

    toolchain: str
    """Shell commands that install a Debian release's own version."""
    probe: str
    """Shell command that fails in an image without the language."""

    def make(self, version: str, official: str, released: date, suite: str | None = None) -> Release:
        """Return a release.

        Args:
            version: number of the version.
            official: official image of the version.
            released: its day.
            suite: the Debian release that has it; None if none has.
        """
        toolchain = self.toolchain if suite else ""
        return Release(
            version=version, official=official, released=released, suite=suite, toolchain=toolchain, probe=self.probe
        )
