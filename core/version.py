"""Version of the installed distribution."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def read_version() -> str:
    """Return the version of mergemill; `unknown` where it is not installed."""
    try:
        return version("mergemill")
    except PackageNotFoundError:
        return "unknown"
