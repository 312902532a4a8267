"""Rust releases, one every six weeks, installed from the official distribution by Debian's rustup."""

from __future__ import annotations

from datetime import date, timedelta

from languages.base import Release

DEFAULT = "1.85"
ROOT = "/opt/rust"
PATH = (f"{ROOT}/bin", "/usr/local/cargo/bin")
FETCHER = f"{ROOT}-fetch/bin/cargo"
"""A newer cargo that reads today's index, for toolchains that cannot."""
SPARSE = 70
"""First minor whose cargo supports the sparse registry protocol."""

_FIRST = date(2015, 5, 14)
"""The day before 1.0; from 1.1 on a release follows every six weeks from this date."""
_OLDEST, _NEWEST = 41, 95
"""1.41 is the first to read lock files of format 2."""

_FETCHING = f"""rustup toolchain install 1.82.0 --profile minimal --no-self-update
mkdir -p {ROOT}-fetch/bin && cp /opt/rustup/toolchains/1.82.0-*/bin/cargo {FETCHER}
rustup toolchain uninstall 1.82.0
"""
_TOOLCHAIN = f"""set -e
export RUSTUP_HOME=/opt/rustup CARGO_HOME=/tmp/cargo
FETCHINGrustup toolchain install VERSION.0 --profile minimal --no-self-update
mv /opt/rustup/toolchains/VERSION.0-* {ROOT}
rm -rf /opt/rustup /tmp/cargo {ROOT}/share"""


def release_date(minor: int) -> date:
    """Return the release date of 1.`minor`."""
    return _FIRST + timedelta(weeks=6 * minor)


def parse_minor(version: str) -> int:
    """Return the minor number of a version."""
    return int(version.split(".")[1])


def _make_release(minor: int) -> Release:
    version = f"1.{minor}"
    fetching = _FETCHING if minor < SPARSE else ""
    return Release(
        version=version,
        official=f"rust:{version}-slim-{'bookworm' if minor >= 70 else 'bullseye'}",
        released=release_date(minor),
        suite="trixie",
        packages=("rustup",),
        toolchain=_TOOLCHAIN.replace("FETCHING", fetching).replace("VERSION", version),
        probe=f"PATH={':'.join(PATH)}:$PATH; cargo --version && rustc --version",
    )


RELEASES = tuple(_make_release(minor) for minor in range(_OLDEST, _NEWEST + 1))
