"""Servers that tests may need: names of `evaluation/services/`, Debian packages, and image names used in CI."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from languages.draft import PlanDraft
from languages.facts import SourcedValue
from languages.workflows import Job

DraftT = TypeVar("DraftT", bound=PlanDraft)

PACKAGES: dict[str, tuple[str, ...]] = {
    "fakeroot": ("fakeroot",),
    "postgresql": ("postgresql",),
    "httpbin": ("python3-httpbin",),
    "redis": ("redis-server",),
    "terminal": (),
    "xvfb": ("xvfb",),
}
"""Server -> Debian packages that provide it."""
_IMAGES = {
    "postgres": "postgresql",
    "postgresql": "postgresql",
    "postgis": "postgresql",
    "pgvector": "postgresql",
    "timescaledb": "postgresql",
    "redis": "redis",
    "redis-server": "redis",
    "valkey": "redis",
    "redis-stack-server": "redis",
    "httpbin": "httpbin",
    "go-httpbin": "httpbin",
}
"""Last component of an image name -> server."""


def parse_service_image(image: str) -> str | None:
    """Return the server of a CI image or service name (`postgres:14-alpine`, `bitnami/redis`), if known."""
    return _IMAGES.get(image.strip().partition("@")[0].rpartition("/")[2].partition(":")[0].lower())


def add_service(draft: DraftT, server: SourcedValue) -> DraftT:
    """Return the draft with a server for its tests and the Debian packages that provide it."""
    if server.text in {service.text for service in draft.services}:
        return draft
    existing = {package.text for package in draft.system_packages}
    added = [replace(server, text=name) for name in PACKAGES[server.text] if name not in existing]
    packages = sorted((*draft.system_packages, *added), key=lambda package: package.text)
    return replace(draft, services=(*draft.services, server), system_packages=tuple(packages))


def add_ci_services(draft: DraftT, jobs: Iterable[Job]) -> DraftT:
    """Return the draft with the servers that CI jobs with tests start, as far as they are known."""
    for job in jobs:
        for service in () if job.is_auxiliary else job.services:
            if name := parse_service_image(service.text):
                draft = add_service(draft, replace(service, text=name))
    return draft
