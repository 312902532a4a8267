"""Artifacts in a store that several machines share, through fsspec: S3, and any other store that it supports.

Names and contents are those of `taskdb.artifacts.folder`. A PUT of S3 is atomic; on other file systems an artifact is
written under a temporary name and then moved. Credentials come from where the tools of the store look for them: for S3
the variables and files of the AWS command line.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fsspec

from core.errors import InputError, MachineError, Transient, UsageError
from taskdb.artifacts.folder import (
    Artifacts,
    compress,
    decompress,
    make_missing_error,
    make_name,
    parse_name,
    write_atomically,
)

S3_PROTOCOLS = ("s3", "s3a")
CACHE_BYTES = 2 * 1024**3
"""Bytes of copies on this machine above which the oldest are removed."""
_EMPTY = hashlib.sha256(b"").hexdigest()
_TRANSIENT_STATUSES = (408, 409, 429)
"""HTTP statuses below 500 that another try may not have."""
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired")
"""Error codes of S3 after which a run should stop and go on with fresh credentials, not fail at each change."""
_USER_ERRORS = frozenset(
    (
        "CredentialRetrievalError",
        "InvalidRegionError",
        "NoCredentialsError",
        "ParamValidationError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "SSOError",
        "TokenRetrievalError",
    )
)
"""Names of botocore's errors about the settings that a user has set, before a request is sent."""
_DAMAGED = "FlexibleChecksumError"
"""Name of botocore's error about an object that differs from the checksum with which it was written."""
_ADVICE = "correct --artifacts or the store's credentials (S3: AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL_S3 ...)"


class SharedArtifacts(Artifacts):
    """Artifacts below a URL, with copies in a folder of this machine. Threads and forked processes may share it."""

    def __init__(self, url: str, cache: Path) -> None:
        """Keep artifacts below `url`, such as `s3://BUCKET/PREFIX`, and copies below the folder `cache`.

        Raises:
            MachineError: a package that the URL needs is missing.
            UsageError: fsspec has no file system for it.
        """
        self.url = url
        # One folder for each URL: what was written to one bucket is not in another.
        self.cache = ArtifactCache(cache / hashlib.sha256(url.encode()).hexdigest()[:16])
        protocol = urlsplit(url).scheme
        self._is_s3 = protocol in S3_PROTOCOLS
        try:
            fsspec.get_filesystem_class(protocol)
        except ImportError as error:
            fix = "pip install 'mergemill[s3]'" if self._is_s3 else str(error)
            raise MachineError(f"--artifacts {url} needs a package that is missing", advice=fix) from error
        except ValueError as error:
            raise UsageError(f"--artifacts {url}: {error}") from error

    @property
    def place(self) -> str:
        """The URL."""
        return self.url

    def put(self, content: bytes) -> str:
        """Store `content` and return its hash; see `Artifacts.put`."""
        digest = hashlib.sha256(content).hexdigest()
        compressed = compress(content)
        self.write_compressed(digest, compressed)
        self.cache.keep(digest, compressed)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the content of an artifact, from the copy on this machine if any; see `Artifacts.get`."""
        with contextlib.suppress(InputError):
            return self.cache.get(digest)
        compressed = self.read_compressed(digest)
        content = decompress(digest, compressed, self.place)
        self.cache.keep(digest, compressed)
        return content

    def check(self, *, writes: bool) -> None:
        """Check that artifacts can be read and, with `writes`, written; see `Artifacts.check`.

        The empty artifact is written, as it is not another's and may stay.
        """
        if writes:
            self.write_compressed(_EMPTY, compress(b""))
            self.cache.remove_oldest()
        with self._translate_errors("read from"):
            self._find(_EMPTY)

    def read_compressed(self, digest: str) -> bytes:
        """Return an artifact as it is stored below the URL; see `Artifacts.read_compressed`."""
        with self._translate_errors("read from", digest):
            compressed = self._find(digest)
        if compressed is None:
            raise make_missing_error(digest, self.place)
        return compressed

    def write_compressed(self, digest: str, compressed: bytes) -> None:
        """Store an artifact below the URL, unless it is there; see `Artifacts.write_compressed`."""
        with self._translate_errors("write to"):
            system, root = self._open()
            path = f"{root}/{make_name(digest)}"
            if self._is_s3:
                _put_object(system, path, compressed)
            elif not system.exists(path):
                _write_and_move(system, path, compressed)

    def list_digests(self) -> Iterator[str]:
        """Yield the hashes of all artifacts below the URL; see `Artifacts.list_digests`."""
        with self._translate_errors("list"):
            system, root = self._open()
            names = [path.removeprefix(f"{root}/") for path in system.find(root)]
        yield from filter(None, map(parse_name, names))

    def _find(self, digest: str) -> bytes | None:
        """Return an artifact as it is stored, or None where it is missing."""
        system, root = self._open()
        try:
            content: bytes = system.cat_file(f"{root}/{make_name(digest)}")
        except FileNotFoundError as error:
            if _get_response(error).get("Error", {}).get("Code") == "NoSuchBucket":
                raise
            return None
        return content

    def _open(self) -> tuple[Any, str]:
        """Return fsspec's file system, an object for each process, and the path in it.

        fsspec keeps file systems by process, so that a forked process gets its own and its own event loop.
        """
        options: dict[str, Any] = {"use_listings_cache": False}
        if self._is_s3:
            # With more than one, each GET is preceded by a HEAD.
            options["max_concurrency"] = 1
            # botocore itself reads AWS_DEFAULT_REGION alone.
            if region := os.environ.get("AWS_REGION"):
                options["client_kwargs"] = {"region_name": region}
        system, root = fsspec.core.url_to_fs(self.url, **options)
        if self._is_s3:
            # A try of s3fs is already AWS_MAX_ATTEMPTS tries of botocore.
            system.retries = 1
        return system, root.rstrip("/")

    @contextlib.contextmanager
    def _translate_errors(self, doing: str, digest: str = "") -> Iterator[None]:
        """Raise the errors of file systems, which are of many kinds, as InputError or Transient."""
        try:
            yield
        except Exception as error:
            if type(error).__name__ == _DAMAGED:
                raise make_missing_error(digest, self.place) from error
            reason = " ".join(str(error.strerror if isinstance(error, OSError) and error.strerror else error).split())
            message = f"cannot {doing} {self.url}: {reason or type(error).__name__}"
            if _is_users_fault(error):
                raise InputError(message, advice=_ADVICE) from error
            raise Transient(message, advice="run the same command again once the store answers") from error


class ArtifactCache(Artifacts):
    """Folder with copies of shared artifacts. It may be removed at any time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._n_bytes = 0
        """Bytes written since the folder was last measured."""

    def keep(self, digest: str, compressed: bytes) -> None:
        """Keep a copy, if this machine permits it."""
        with contextlib.suppress(InputError, Transient):
            # What a loss of power damages is read from the store again.
            write_atomically(self._path(digest), compressed, self.folder, durable=False)
            self._n_bytes += len(compressed)
            # Measuring reads the whole folder, so it waits until much has been written.
            if self._n_bytes > CACHE_BYTES // 16:
                self.remove_oldest()

    def remove_oldest(self) -> None:
        """Remove the copies that were written first once all take more than CACHE_BYTES."""
        self._n_bytes = 0
        files = [(path, path.stat()) for path in self.folder.glob("*/*.zst")]
        excess = sum(stat.st_size for _, stat in files) - CACHE_BYTES
        for path, stat in sorted(files, key=lambda file: file[1].st_mtime):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= stat.st_size


def _put_object(system: Any, path: str, content: bytes) -> None:
    """Store an object in a single request, unless it exists."""
    try:
        system.pipe_file(path, content, mode="create")
    except FileExistsError:
        return
    except OSError as error:
        # ENOSYS: the server has no conditional writes. Overwriting does no harm, as equal names have equal content.
        if error.errno != errno.ENOSYS:
            raise
        system.pipe_file(path, content)


def _write_and_move(system: Any, path: str, content: bytes) -> None:
    folder = path.rpartition("/")[0]
    temporary = f"{folder}/.{uuid.uuid4().hex}"
    system.makedirs(folder, exist_ok=True)
    try:
        system.pipe_file(temporary, content)
        system.mv(temporary, path)
    except BaseException:
        with contextlib.suppress(Exception):
            system.rm_file(temporary)
        # If the file exists, another writer has stored the same content in the meantime.
        if not system.exists(path):
            raise


def _is_users_fault(error: Exception) -> bool:
    """Whether trying again would fail in the same way: no rights, no such place, wrong credentials."""
    response = _get_response(error)
    if response.get("Error", {}).get("Code") in _EXPIRED:
        return False
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if 300 <= status < 500:
        return status not in _TRANSIENT_STATUSES
    is_named = not _USER_ERRORS.isdisjoint(base.__name__ for base in type(error).__mro__)
    return is_named or isinstance(error, PermissionError | FileNotFoundError)


def _get_response(error: BaseException) -> dict[str, Any]:
    """Return the server's response as botocore describes it, or nothing."""
    response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    return response if isinstance(response, dict) else {}
