"""GitHub's published schemas, fetched from npm on first use and cached for the user.

Nothing of them is in the repository. `npm_config_registry` names another registry, `SSL_CERT_FILE` another
authority, `XDG_CACHE_HOME` another cache; the archive's SHA-512 is always checked.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import uuid
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from packageurl.contrib.purl2url import get_download_url


@dataclass(frozen=True)
class NpmPackage:
    """One file of one pinned npm package."""

    name: str
    version: str
    sha512: str  # as in npm's "integrity", base64
    member: str


GRAPHQL_SCHEMA = NpmPackage(
    "@octokit/graphql-schema",
    "15.26.1",
    "RFDC2MpRBd4AxSRvUeBIVeBU7ojN/SxDfALUd7iVYOSeEK3gZaqR2MGOysj4Zh2xj2RY5fQAUT+Oqq7hWTraMA==",
    "package/schema.json",
)
OPENAPI = NpmPackage(
    "@octokit/openapi",
    "23.0.2",
    "pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
    "package/generated/api.github.com.json",
)


def get_cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergemill-tests"


def make_archive_url(package: NpmPackage) -> str:
    """Return the archive's address at npm's own registry, or at the one configured by the user."""
    usual: str = get_download_url(f"pkg:npm/{package.name.replace('@', '%40')}@{package.version}")
    registry = os.environ.get("npm_config_registry")  # noqa: SIM112 - npm's
    return registry.rstrip("/") + urlsplit(usual).path if registry else usual


def fetch_package(package: NpmPackage) -> Path:
    """Return the file on disk, downloaded on first use. Raises httpx.HTTPError, or ValueError for a wrong checksum."""
    kept = get_cache_folder() / package.name.replace("/", "__") / package.version / Path(package.member).name
    if kept.exists():
        return kept
    answer = httpx.get(make_archive_url(package), follow_redirects=True, timeout=120)
    answer.raise_for_status()
    if base64.b64encode(hashlib.sha512(answer.content).digest()).decode() != package.sha512:
        raise ValueError(f"{package.name} {package.version}: not the pinned archive")
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        inner = archive.extractfile(package.member)
        assert inner, package.member
        content = inner.read()
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_name(f"{kept.name}.{uuid.uuid4().hex}")  # safe for several test processes at once
    new.write_bytes(content)
    new.replace(kept)
    return kept


@lru_cache(maxsize=1)
def load_openapi() -> dict[str, Any]:
    """Return GitHub's OpenAPI description of its REST API (OpenAPI 3.0)."""
    description: dict[str, Any] = json.loads(fetch_package(OPENAPI).read_bytes())
    return description
