"""The catalog of base images (`dockerfiles/catalog.toml`) as values."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from mergemill.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version of a language and where a base for it can come from."""

    language: str
    version: str
    """`3.11`: what packages ask for."""
    official: str
    """Name of the official image, without digest."""
    digest: str | None
    suite: str | None
    """Debian release whose own interpreter has this version."""

    @property
    def image(self) -> str:
        """The official image as it is pulled: by digest where there is one."""
        return f"{self.official.partition(':')[0]}@{self.digest}" if self.digest else self.official


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(text("catalog.toml"))


def text(name: str) -> str:
    """A file of `dockerfiles/`."""
    return resources.files("dockerfiles").joinpath(name).read_text(encoding="utf-8")


def releases(language: str) -> tuple[Release, ...]:
    """All releases of a language, oldest first.

    Raises:
        InputError: the catalog has no such language.
    """
    if language not in _table()["defaults"]:
        raise InputError(f"no base images for {language}", advice="see dockerfiles/catalog.toml")
    return tuple(
        Release(
            language=language,
            version=version,
            official=entry["official"],
            digest=entry.get("digest"),
            suite=entry.get("suite"),
        )
        for version, entry in _table()[language].items()
    )


def release(language: str, version: str) -> Release:
    """One release.

    Raises:
        InputError: the catalog does not have it.
    """
    known = releases(language)
    for one in known:
        if one.version == version:
            return one
    raise InputError(f"no base image for {language} {version}", advice=f"known: {', '.join(r.version for r in known)}")


def defaults(language: str) -> tuple[str, ...]:
    """The versions that are made when none are named."""
    return tuple(_table()["defaults"][language])


def packages(language: str | None = None) -> tuple[str, ...]:
    """Debian packages of every base; with a language, also those of Debian's own interpreter."""
    table = _table()["packages"]
    return (*table["debian"], *(table[language] if language else ()))
