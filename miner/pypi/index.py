"""A package index as the miner sees it: which source distributions there are, and their bytes, verified."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import requests
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    PYPI_SIMPLE_ENDPOINT,
    DigestMismatchError,
    DistributionPackage,
    NoDigestsError,
    NoSuchProjectError,
    PyPISimple,
    UnsupportedContentTypeError,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from mergemill.errors import InputError, Transient

if TYPE_CHECKING:
    from mergemill.config import Settings

T = TypeVar("T")

INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
"""Where an index other than PyPI is named, first come first served."""

_ENDINGS = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")  # in the order of preference
_TIMEOUT = (15.0, 60.0)  # seconds: to connect, between two bytes


@dataclass(frozen=True, slots=True)
class Sdist:
    """One final release's source distribution. `uploaded` is ISO 8601 in UTC, empty where the index keeps no dates."""

    version: Version
    uploaded: str
    size: int | None
    """Bytes, where the index says."""
    package: DistributionPackage

    @property
    def digest(self) -> str:
        """Sha256 (hex) as the index tells it, or empty."""
        return self.package.digests.get("sha256", "")


class Index:
    """The index that pip and uv would ask. A context manager; keeps one connection."""

    def __init__(self, settings: Settings, *, attempts: int = 4, first_wait: float = 1.0) -> None:
        endpoint = next((os.environ[name] for name in INDEX_VARIABLES if os.environ.get(name)), PYPI_SIMPLE_ENDPOINT)
        self.client = PyPISimple(endpoint)
        if bundle := settings.found_ca_bundle():
            self.client.s.verify = str(bundle)
        self.attempts = attempts
        self.first_wait = first_wait

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.s.close()

    def sdists(self, name: str) -> list[Sdist]:
        """Final releases that have a source distribution and were not yanked, by version, lowest first.

        Raises:
            InputError: the index has no such package, or it has no source distributions.
            Transient: the index cannot be reached.
        """
        try:
            page = self._try(lambda: self.client.get_project_page(name, timeout=_TIMEOUT), f"the index for {name}")
        except NoSuchProjectError as error:
            raise InputError(
                f"no package {name} on the index {self.client.endpoint}", advice="check its name"
            ) from error
        except UnsupportedContentTypeError as error:
            raise InputError(f"{self.client.endpoint} is not a package index") from error
        best: dict[Version, Sdist] = {}
        for package in page.packages:
            found = _final(package)
            if found and (found.version not in best or _rank(found) < _rank(best[found.version])):
                best[found.version] = found
        if not best:
            raise InputError(f"{name} has no source distributions of final releases")
        return [best[version] for version in sorted(best)]

    def download(self, sdist: Sdist, folder: Path) -> Path:
        """The file of a source distribution, its digest verified.

        Raises:
            InputError: the file does not match its digest, or has none.
            Transient: it cannot be had this time.
        """
        path = folder / sdist.package.filename

        def get() -> Path:
            self.client.download_package(sdist.package, path, timeout=_TIMEOUT)
            return path

        try:
            return self._try(get, sdist.package.filename)
        except (DigestMismatchError, NoDigestsError) as error:
            raise InputError(f"{sdist.package.filename}: {type(error).__name__}") from error

    def _try(self, action: Callable[[], T], what: str) -> T:
        """Do something over the network, again after a failure that may pass."""
        retrying = Retrying(
            stop=stop_after_attempt(self.attempts), wait=wait_exponential(multiplier=self.first_wait, max=30),
            retry=retry_if_exception_type(Transient), reraise=True,
        )  # fmt: skip
        result: T = retrying(_passing, action, what)
        return result


def _passing(action: Callable[[], T], what: str) -> T:
    """`action`, with what may pass told as Transient."""
    try:
        return action()
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if 400 <= status < 500 and status not in (408, 429):
            raise InputError(f"the index answers {status} for {what}") from error
        raise Transient(f"the index answers {status} for {what}", advice="run the same command again") from error
    except requests.RequestException as error:
        raise Transient(f"cannot reach {what}: {type(error).__name__}", advice="run the same command again") from error
    except OSError as error:
        raise Transient(f"cannot keep {what}: {error.strerror}", advice="run the same command again") from error


def _final(package: DistributionPackage) -> Sdist | None:
    if package.package_type != "sdist" or package.is_yanked or package.version is None:
        return None
    try:
        version = Version(package.version)
    except InvalidVersion:
        return None
    if version.is_prerelease or not package.filename.endswith(_ENDINGS):
        return None
    when = package.upload_time
    uploaded = when.astimezone(UTC).isoformat(timespec="seconds") if when else ""
    return Sdist(version=version, uploaded=uploaded, size=package.size, package=package)


def _rank(sdist: Sdist) -> int:
    return next(i for i, ending in enumerate(_ENDINGS) if sdist.package.filename.endswith(ending))
