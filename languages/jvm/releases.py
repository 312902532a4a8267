"""The JDKs, from Debian's own packages, each with the Maven of its suite."""

from __future__ import annotations

from datetime import date

from languages import apt
from languages.base import Release

DEFAULT = "17"

_SUITES = {"8": "sid", "11": "bullseye", "17": "bookworm", "21": "trixie", "25": "trixie"}
"""Debian releases that have this JDK; 8 is kept in Debian's unstable release alone."""

RELEASED = {
    "8": date(2014, 3, 18), "11": date(2018, 9, 25), "17": date(2021, 9, 14), "21": date(2023, 9, 19),
    "25": date(2025, 9, 16),
}  # fmt: skip
"""First releases of those with long support, oldest first."""

SOURCE_UNTIL = {1: 8, 2: 8, 3: 8, 4: 8, 5: 8, 6: 11, 7: 19}
"""Source level -> the last JDK that compiles it; later levels are compiled by all."""


def _toolchain(version: str) -> str:
    # By apt and not by debootstrap, which takes the first of alternatives: a second, newer Java.
    # The links that Java's packages set for manuals need the folder.
    return (
        f"mkdir -p /usr/share/man/man1 && {apt.UPDATE}"
        f" && {apt.INSTALL} openjdk-{version}-jdk-headless maven > /dev/null"
        " && rm -rf /var/lib/apt/lists/* /usr/lib/jvm/*/lib/src.zip /usr/lib/jvm/*/jmods"
    )


RELEASES = tuple(
    Release(
        version=version,
        official=f"maven:3.9-amazoncorretto-{version}-debian",
        released=released,
        suite=_SUITES[version],
        toolchain=_toolchain(version),
        probe="javac -version && mvn -B -version",
    )
    for version, released in RELEASED.items()
)
