"""Julia releases: one Debian release has its own, the others are official images."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain
from languages.scripting.releases import DebianReleases

_DEBIAN = DebianReleases(
    toolchain=render_toolchain("julia", "curl"),  # Pkg of old releases downloads by curl
    probe="julia --startup-file=no --version > /dev/null",
)


def _make_release(version: str, released: date, suite: str | None = None) -> Release:
    return _DEBIAN.make(version, f"julia:{version}", released, suite)


RELEASES = (
    _make_release("1.5", date(2020, 8, 1), "bullseye"),
    _make_release("1.6", date(2021, 3, 24)),
    _make_release("1.7", date(2021, 11, 30)),
    _make_release("1.8", date(2022, 8, 17)),
    _make_release("1.9", date(2023, 5, 7)),
    _make_release("1.10", date(2023, 12, 25)),
    _make_release("1.11", date(2024, 10, 7)),
    _make_release("1.12", date(2025, 10, 7)),
)
DEFAULT = "1.5"
