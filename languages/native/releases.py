"""Compilers: the GCC of each Debian release, with the build tools of the same release."""

from __future__ import annotations

from datetime import date

from languages import apt
from languages.base import Release

DEFAULT = "12"

TOOLS = ("cmake", "ninja-build", "meson", "autoconf", "automake", "libtool", "bison", "flex", "gettext", "autopoint")
"""Build tools of every base; in an official image the dependency step installs the missing packages."""

SUITES = {"10": "bullseye", "12": "bookworm", "14": "trixie"}
"""GCC -> the Debian release that has it."""
CMAKE = {"10": (3, 18), "12": (3, 25), "14": (3, 31)}
"""GCC -> CMake version of the same release."""
RELEASED = {"10": date(2021, 8, 14), "12": date(2023, 6, 10), "14": date(2025, 8, 9)}
"""GCC -> release date of its Debian release."""


RELEASES = tuple(
    Release(
        version=version,
        official=f"buildpack-deps:{suite}",
        released=RELEASED[version],
        suite=suite,
        toolchain=apt.render_install(TOOLS),
        probe="gcc --version && g++ --version && make --version",
    )
    for version, suite in SUITES.items()
)
