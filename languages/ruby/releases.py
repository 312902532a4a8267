"""Ruby releases and their base images: one in each Debian release, the others as official images."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain
from languages.scripting.releases import DebianReleases

_DEBIAN = DebianReleases(
    toolchain=render_toolchain("ruby", "ruby-dev", "ruby-bundler", "rake"),
    probe="ruby -e 'require %q(json); require %q(minitest); require %q(bundler)' && gem --version > /dev/null",
)


def _make_release(version: str, released: date, suite: str | None = None) -> Release:
    official = f"ruby:{version}-slim-bookworm" if version >= "2.7" else f"ruby:{version}-slim-bullseye"
    return _DEBIAN.make(version, official, released, suite)


RELEASES = (
    _make_release("2.5", date(2017, 12, 25)),
    _make_release("2.6", date(2018, 12, 25)),
    _make_release("2.7", date(2019, 12, 25), "bullseye"),
    _make_release("3.0", date(2020, 12, 25)),
    _make_release("3.1", date(2021, 12, 25), "bookworm"),
    _make_release("3.2", date(2022, 12, 25)),
    _make_release("3.3", date(2023, 12, 25), "trixie"),
    _make_release("3.4", date(2024, 12, 25)),
)
DEFAULT = "3.1"
