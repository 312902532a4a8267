"""Which versions of a language there are, and what their bases are made of."""

from __future__ import annotations

from dockerfiles.render import base_packages, pinned
from languages.base import Release
from languages.registry import language as known_language
from mergemill.errors import InputError


def releases(language: str) -> tuple[Release, ...]:
    """All releases of a language, oldest first.

    Raises:
        InputError: there is no such language.
    """
    return known_language(language).RELEASES


def release(language: str, version: str) -> Release:
    """One release.

    Raises:
        InputError: the language does not have it.
    """
    known = releases(language)
    for one in known:
        if one.version == version:
            return one
    raise InputError(f"no base image for {language} {version}", advice=f"known: {', '.join(r.version for r in known)}")


def default(language: str) -> str:
    """The version that is made when none is named."""
    return known_language(language).DEFAULT


def official_image(release: Release) -> str:
    """The official image as it is pulled: by digest where there is one."""
    return pinned(release.official)


def packages(release: Release | None = None) -> tuple[str, ...]:
    """Debian packages of every base; with a release, also those of Debian's own version of it."""
    return tuple(dict.fromkeys([*base_packages(), *(release.packages if release else ())]))
