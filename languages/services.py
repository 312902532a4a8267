"""Servers that tests may need, by the names of `backends/testing/services/`, and how CI speaks of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from languages.draft import Draft
from languages.facts import Wanted
from languages.workflows import Job

D = TypeVar("D", bound=Draft)

PACKAGES: dict[str, tuple[str, ...]] = {
    "postgresql": ("postgresql",),
    "redis": ("redis-server",),
    "xvfb": ("xvfb",),
}
"""Server -> the Debian packages that have it."""
_IMAGES = {
    "postgres": "postgresql", "postgresql": "postgresql", "postgis": "postgresql", "pgvector": "postgresql",
    "timescaledb": "postgresql", "redis": "redis", "redis-server": "redis", "valkey": "redis",
    "redis-stack-server": "redis",
}  # fmt: skip
"""Image's last name -> server."""


def of_image(image: str) -> str | None:
    """The server that CI means by an image or a word (`postgres:14-alpine`, `bitnami/redis`), if known."""
    return _IMAGES.get(image.strip().partition("@")[0].rpartition("/")[2].partition(":")[0].lower())


def with_service(draft: D, wanted: Wanted) -> D:
    """The draft with a server beside its tests, and the packages that have it."""
    if wanted.text in {service.text for service in draft.services}:
        return draft
    have = {package.text for package in draft.system_packages}
    new = [replace(wanted, text=name) for name in PACKAGES[wanted.text] if name not in have]
    packages = sorted((*draft.system_packages, *new), key=lambda package: package.text)
    return replace(draft, services=(*draft.services, wanted), system_packages=tuple(packages))


def with_services(draft: D, known: Iterable[Job]) -> D:
    """The draft with the servers that CI jobs about tests start, as far as they can be started here."""
    for job in known:
        for service in () if job.is_beside else job.services:
            if name := of_image(service.text):
                draft = with_service(draft, replace(service, text=name))
    return draft
