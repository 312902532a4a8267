"""R releases: one in each Debian release, the others as official images."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain
from languages.scripting.releases import DebianReleases

_DEBIAN = DebianReleases(toolchain=render_toolchain("r-base-core"), probe="Rscript --version > /dev/null")


def _make_release(version: str, patch: str, released: date, suite: str | None = None) -> Release:
    return _DEBIAN.make(version, f"r-base:{version}.{patch}", released, suite)


RELEASES = (
    _make_release("4.0", "4", date(2020, 4, 24), "bullseye"),
    _make_release("4.1", "3", date(2021, 5, 18)),
    _make_release("4.2", "2", date(2022, 4, 22), "bookworm"),
    _make_release("4.3", "3", date(2023, 4, 21)),
    _make_release("4.4", "3", date(2024, 4, 24)),
    _make_release("4.5", "0", date(2025, 4, 11), "trixie"),
)
DEFAULT = "4.2"
