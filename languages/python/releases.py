"""Python releases and their base images. Versions that no Debian release has can be copied from this machine."""

from __future__ import annotations

from languages.base import Release
from languages.python.versions import RELEASED

DEFAULT = "3.11"

_SUITES = {"3.9": "bullseye", "3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
"""Debian releases whose own interpreter has this version."""
_OFFICIAL = {"3.6": "python:3.6-slim-bullseye"}
"""Official images; all others are `python:VERSION-slim-bookworm`."""

RELEASES = tuple(
    Release(
        version=version,
        official=_OFFICIAL.get(version, f"python:{version}-slim-bookworm"),
        released=RELEASED[version],
        suite=_SUITES.get(version),
        packages=("python3", "python3-dev"),
        probe="""\"$MERGEMILL_PYTHON\" -c 'import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib'""",
    )
    for version in ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
)
