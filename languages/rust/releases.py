"""Rust's releases: one every six weeks, taken from the project's own distribution by Debian's rustup."""

from __future__ import annotations

from datetime import date, timedelta

from languages.base import Release

DEFAULT = "1.85"
ROOT = "/opt/rust"
PATH = (f"{ROOT}/bin", "/usr/local/cargo/bin")
FETCHER = f"{ROOT}-fetch/bin/cargo"
"""A cargo that reads today's index, beside toolchains too old for that."""
SPARSE = 70
"""The first minor whose cargo reads the index file by file, as registries serve it today."""

_FIRST = date(2015, 5, 14)
"""1.0 came out the day after; from 1.1 on every six weeks counted from here."""
_OLDEST, _NEWEST = 41, 95
"""1.41 is the first to read lock files of today's form but one."""

_FETCHING = f"""rustup toolchain install 1.82.0 --profile minimal --no-self-update
mkdir -p {ROOT}-fetch/bin && cp /opt/rustup/toolchains/1.82.0-*/bin/cargo {FETCHER}
rustup toolchain uninstall 1.82.0
"""
_TOOLCHAIN = f"""set -e
export RUSTUP_HOME=/opt/rustup CARGO_HOME=/tmp/cargo
FETCHINGrustup toolchain install VERSION.0 --profile minimal --no-self-update
mv /opt/rustup/toolchains/VERSION.0-* {ROOT}
rm -rf /opt/rustup /tmp/cargo {ROOT}/share"""


def released(minor: int) -> date:
    """The day 1.`minor` came out."""
    return _FIRST + timedelta(weeks=6 * minor)


def minor_of(version: str) -> int:
    """The second number of a version."""
    return int(version.split(".")[1])


def _release(minor: int) -> Release:
    version = f"1.{minor}"
    fetching = _FETCHING if minor < SPARSE else ""
    return Release(
        version=version, official=f"rust:{version}-slim-{'bookworm' if minor >= 70 else 'bullseye'}",
        released=released(minor), suite="trixie", packages=("rustup",),
        toolchain=_TOOLCHAIN.replace("FETCHING", fetching).replace("VERSION", version),
        probe=f"PATH={':'.join(PATH)}:$PATH; cargo --version && rustc --version",
    )  # fmt: skip


RELEASES = tuple(_release(minor) for minor in range(_OLDEST, _NEWEST + 1))
