"""PHP releases and their base images."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain
from languages.scripting.releases import DebianReleases

_EXTENSIONS = ("xml", "mbstring", "curl", "intl", "zip", "sqlite3", "gd", "bcmath", "gmp")
_DEBIAN = DebianReleases(
    toolchain=render_toolchain("php-cli", *(f"php-{name}" for name in _EXTENSIONS), "composer", "unzip"),
    probe="php -r 'exit(class_exists(%q) ? 0 : 1);'".replace("%q", '"DOMDocument"'),
)


def _make_release(version: str, released: date, suite: str | None = None) -> Release:
    official = f"php:{version}-cli-bookworm" if version >= "8" else f"php:{version}-cli-bullseye"
    return _DEBIAN.make(version, official, released, suite)


RELEASES = (
    _make_release("7.3", date(2018, 12, 6)),
    _make_release("7.4", date(2019, 11, 28), "bullseye"),
    _make_release("8.0", date(2020, 11, 26)),
    _make_release("8.1", date(2021, 11, 25)),
    _make_release("8.2", date(2022, 12, 8), "bookworm"),
    _make_release("8.3", date(2023, 11, 23)),
    _make_release("8.4", date(2024, 11, 21), "trixie"),
)
DEFAULT = "8.2"
