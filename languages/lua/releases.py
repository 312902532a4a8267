"""Lua releases: each Debian release has all of them; there is no official image of Lua."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain

DEFAULT = "5.4"
_SUITE = "bookworm"


def list_packages(version: str) -> tuple[str, ...]:
    """Return the Debian packages of an interpreter with its headers and LuaRocks."""
    return (f"lua{version}", f"liblua{version}-dev", "luarocks")


def _make_release(version: str, released: date) -> Release:
    return Release(
        version=version,
        official=f"buildpack-deps:{_SUITE}",
        released=released,
        suite=_SUITE,
        toolchain=render_toolchain(*list_packages(version)),
        probe="gcc --version > /dev/null",  # an official image gets the interpreter with the packages of a project
    )


RELEASES = (
    _make_release("5.1", date(2006, 2, 21)),
    _make_release("5.2", date(2011, 12, 12)),
    _make_release("5.3", date(2015, 1, 12)),
    _make_release("5.4", date(2020, 6, 29)),
)
