"""JDKs from Debian packages, each with the Maven of its Debian release."""

from __future__ import annotations

from datetime import date

from languages import apt
from languages.base import Release

DEFAULT = "17"

_SUITES = {"8": "sid", "11": "bullseye", "17": "bookworm", "21": "trixie", "25": "trixie"}
"""JDK -> Debian release that has it; 8 exists only in unstable."""

RELEASED = {
    "8": date(2014, 3, 18),
    "11": date(2018, 9, 25),
    "17": date(2021, 9, 14),
    "21": date(2023, 9, 19),
    "25": date(2025, 9, 16),
}
"""Release dates of long-term support versions, oldest first."""

SOURCE_UNTIL = {1: 8, 2: 8, 3: 8, 4: 8, 5: 8, 6: 11, 7: 19}
"""Source level -> the last JDK that compiles it; all JDKs compile later levels."""


def _render_toolchain(version: str) -> str:
    # With apt instead of debootstrap, which always takes the first alternative: a second, newer Java.
    # Java packages install manual page links into the folder.
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
        toolchain=_render_toolchain(version),
        probe="javac -version && mvn -B -version",
    )
    for version, released in RELEASED.items()
)
