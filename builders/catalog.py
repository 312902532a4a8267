"""Catalog of language versions, with the images and packages that their bases are made of."""

from __future__ import annotations

from core.errors import InputError
from dockerfiles.render import list_base_packages, pin_image
from languages.base import Release
from languages.registry import get_language as known_language


def list_releases(language: str) -> tuple[Release, ...]:
    """Return all releases of a language, oldest first.

    Raises:
        InputError: there is no such language.
    """
    return known_language(language).releases


def get_release(language: str, version: str) -> Release:
    """Return a release.

    Raises:
        InputError: the language has no such release.
    """
    releases = list_releases(language)
    for release in releases:
        if release.version == version:
            return release
    versions = ", ".join(release.version for release in releases)
    raise InputError(f"no base image for {language} {version}", advice=f"available: {versions}")


def get_default_version(language: str) -> str:
    """Return the version that is used when none is given."""
    return known_language(language).default_version


def get_official_image(release: Release) -> str:
    """Return the reference of the official image, by digest where the catalog has a digest."""
    return pin_image(release.official)


def list_packages(release: Release | None = None) -> tuple[str, ...]:
    """Return the Debian packages of every base; with a release, also those of Debian's own version of it."""
    return tuple(dict.fromkeys([*list_base_packages(), *(release.packages if release else ())]))
