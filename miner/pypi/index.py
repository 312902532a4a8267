"""Package index: list source distributions, and download them with verified digests."""

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

from core.errors import InputError, Transient, make_write_error

if TYPE_CHECKING:
    from core.settings.machine import HostSettings

T = TypeVar("T")

INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
"""Variables that name another index than PyPI, in order of precedence."""

_ENDINGS = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")  # in order of preference
_TIMEOUT = (15.0, 60.0)  # seconds: to connect, between two bytes


@dataclass(frozen=True, slots=True)
class Sdist:
    """Source distribution of a final release. `uploaded` is ISO 8601 in UTC, empty where the index has no dates."""

    version: Version
    uploaded: str
    size: int | None
    """Bytes, where the index reports it."""
    package: DistributionPackage

    @property
    def digest(self) -> str:
        """Sha256 (hex) reported by the index, or empty."""
        return self.package.digests.get("sha256", "")


class PackageIndex:
    """The index that pip and uv use. A context manager; keeps a connection."""

    def __init__(self, host: HostSettings, *, attempts: int = 4, first_wait: float = 1.0) -> None:
        endpoint = next((os.environ[name] for name in INDEX_VARIABLES if os.environ.get(name)), PYPI_SIMPLE_ENDPOINT)
        self.client = PyPISimple(endpoint)
        if bundle := host.find_ca_bundle():
            self.client.s.verify = str(bundle)
        self.attempts = attempts
        self.first_wait = first_wait

    def __enter__(self) -> PackageIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.s.close()

    def list_sdists(self, name: str) -> list[Sdist]:
        """List final releases with a source distribution, yanked releases excluded, by version, lowest first.

        Raises:
            InputError: the index has no such package, or it has no source distributions.
            Transient: the index cannot be reached.
        """
        try:
            page = self._retry(lambda: self.client.get_project_page(name, timeout=_TIMEOUT), f"the index for {name}")
        except NoSuchProjectError as error:
            raise InputError(
                f"no package {name} on the index {self.client.endpoint}", advice="check its name"
            ) from error
        except UnsupportedContentTypeError as error:
            raise InputError(f"{self.client.endpoint} is not a package index") from error
        best: dict[Version, Sdist] = {}
        for package in page.packages:
            release = _parse_final_release(package)
            if release and (release.version not in best or _rank_sdist(release) < _rank_sdist(best[release.version])):
                best[release.version] = release
        if not best:
            raise InputError(f"{name} has no source distributions of final releases")
        return [best[version] for version in sorted(best)]

    def download(self, sdist: Sdist, folder: Path) -> Path:
        """Download a source distribution and verify its digest.

        Raises:
            InputError: the file does not match its digest, or has none.
            Transient: the download failed.
        """
        path = folder / sdist.package.filename

        def get() -> Path:
            self.client.download_package(sdist.package, path, timeout=_TIMEOUT)
            return path

        try:
            return self._retry(get, sdist.package.filename)
        except (DigestMismatchError, NoDigestsError) as error:
            raise InputError(f"{sdist.package.filename}: {type(error).__name__}") from error

    def _retry(self, action: Callable[[], T], what: str) -> T:
        """Call `action`, again after a transient failure."""
        retrying = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=wait_exponential(multiplier=self.first_wait, max=30),
            retry=retry_if_exception_type(Transient),
            reraise=True,
        )
        result: T = retrying(_translate_errors, action, what)
        return result


def _translate_errors(action: Callable[[], T], what: str) -> T:
    """Call `action`; raise transient failures as Transient."""
    try:
        return action()
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if 400 <= status < 500 and status not in (408, 429):
            raise InputError(f"the index returned {status} for {what}") from error
        raise Transient(f"the index returned {status} for {what}", advice="run the same command again") from error
    except requests.RequestException as error:
        raise Transient(f"cannot reach {what}: {type(error).__name__}", advice="run the same command again") from error
    except OSError as error:
        raise make_write_error(f"cannot keep {what}", error, advice="run the same command again") from error


def _parse_final_release(package: DistributionPackage) -> Sdist | None:
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


def _rank_sdist(sdist: Sdist) -> int:
    return next(i for i, ending in enumerate(_ENDINGS) if sdist.package.filename.endswith(ending))
