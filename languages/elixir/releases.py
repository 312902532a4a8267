"""Elixir releases and their base images."""

from __future__ import annotations

from datetime import date

from languages.base import Release
from languages.scripting.debian import render_toolchain
from languages.scripting.releases import DebianReleases

_DEBIAN = DebianReleases(
    toolchain=render_toolchain(
        "elixir", "erlang-dev", "erlang-parsetools", "erlang-xmerl", "erlang-inets", "erlang-ssl"
    ),
    probe="mix --version > /dev/null",
)


def _make_release(version: str, released: date, suite: str | None = None) -> Release:
    return _DEBIAN.make(version, f"elixir:{version}-slim", released, suite)


RELEASES = (
    _make_release("1.10", date(2020, 1, 27), "bullseye"),
    _make_release("1.11", date(2020, 10, 6)),
    _make_release("1.12", date(2021, 5, 19)),
    _make_release("1.13", date(2021, 12, 3)),
    _make_release("1.14", date(2022, 9, 1), "bookworm"),
    _make_release("1.15", date(2023, 6, 19)),
    _make_release("1.16", date(2023, 12, 22)),
    _make_release("1.17", date(2024, 6, 12)),
    _make_release("1.18", date(2024, 12, 19), "trixie"),
)
DEFAULT = "1.14"
