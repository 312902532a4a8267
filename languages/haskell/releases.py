"""GHC releases: those of two Debian releases, the others as official images."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain
from languages.scripting.releases import DebianReleases

_DEBIAN = DebianReleases(
    toolchain=render_toolchain("ghc", "cabal-install"), probe="ghc --version > /dev/null && cabal --version > /dev/null"
)


def _make_release(version: str, released: date, suite: str | None = None) -> Release:
    return _DEBIAN.make(version, f"haskell:{version}-slim", released, suite)


RELEASES = (
    _make_release("8.10", date(2020, 3, 24)),
    _make_release("9.0", date(2021, 2, 4), "bookworm"),
    _make_release("9.2", date(2021, 10, 29)),
    _make_release("9.4", date(2022, 8, 7)),
    _make_release("9.6", date(2023, 3, 10), "trixie"),
    _make_release("9.8", date(2023, 10, 9)),
    _make_release("9.10", date(2024, 5, 10)),
)
DEFAULT = "9.6"
