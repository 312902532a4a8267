"""Releases of the .NET SDK, all of them official images: Debian has no package of it."""

from __future__ import annotations

from datetime import date

from languages.base import Release


def _make_release(version: str, system: str, released: date) -> Release:
    return Release(
        version=version,
        official=f"mcr.microsoft.com/dotnet/sdk:{version}-{system}",
        released=released,
        probe="dotnet --version > /dev/null",
    )


RELEASES = (
    _make_release("5.0", "bullseye-slim", date(2020, 11, 10)),
    _make_release("6.0", "bookworm-slim", date(2021, 11, 8)),
    _make_release("7.0", "bookworm-slim", date(2022, 11, 8)),
    _make_release("8.0", "bookworm-slim", date(2023, 11, 14)),
    _make_release("9.0", "bookworm-slim", date(2024, 11, 12)),
)
DEFAULT = "8.0"
