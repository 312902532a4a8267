"""Perl releases and their base images."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain
from languages.scripting.releases import DebianReleases

_DEBIAN = DebianReleases(
    toolchain=render_toolchain("perl", "cpanminus", "libmodule-build-perl", "libmodule-install-perl"),
    probe="perl -MTest::More -MTAP::Harness -e 1 && prove --version > /dev/null",
)


def _make_release(version: str, released: date, suite: str | None = None) -> Release:
    official = f"perl:{version}-slim-bookworm"
    return _DEBIAN.make(version, official, released, suite)


RELEASES = (
    _make_release("5.30", date(2019, 5, 22)),
    _make_release("5.32", date(2020, 6, 20), "bullseye"),
    _make_release("5.34", date(2021, 5, 20)),
    _make_release("5.36", date(2022, 5, 28), "bookworm"),
    _make_release("5.38", date(2023, 7, 2)),
    _make_release("5.40", date(2024, 6, 9), "trixie"),
)
DEFAULT = "5.36"
