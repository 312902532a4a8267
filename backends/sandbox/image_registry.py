"""Image registries, through the engine, which uses its own TLS configuration and the user's docker credentials.

An image is pushed and pulled as `HOST/PREFIX/env:TAG`. The engine does not keep that name: locally an image has its own
name, which is the same on all machines. Pulls name the digest of the manifest, so the engine rejects other bytes.
"""

from __future__ import annotations

import http
import logging
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from backends.sandbox.removal import CONNECTION_ERRORS
from core.errors import CancelledRunError, InputError, MergemillError, Transient, UsageError

log = logging.getLogger(__name__)

TRANSFER_TIMEOUT = 1800
"""Seconds the engine may be silent while it transfers an image."""
_REGISTRY = re.compile(
    r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+(?=:))(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
)
"""HOST[:PORT]/PREFIX. Without a dot, a port or `localhost` the first part would name a user of Docker Hub."""
ABSENT_PATTERN = re.compile(r"manifest unknown|name unknown|not found", re.IGNORECASE)
_DENIED_PATTERN = re.compile(r"denied|unauthorized|no basic auth|authorization failed", re.IGNORECASE)
_ERROR_TABLE: tuple[tuple[str, type[MergemillError], str, str], ...] = (
    ("no space left", Transient, "the disk is full", "free disk space, for example: mergemill images prune"),
    ("verification failed", InputError, "holds something else under that digest", "push the image again"),
    ("unauthorized|authentication|denied|basic auth", InputError, "denies access", "docker login {host}"),
    ("invalid reference|invalid repository", InputError, "does not accept that name", "--registry HOST/PREFIX"),
    ("", Transient, "does not answer", "run the same command again later"),
)
"""Pattern of the message, error class, description and advice. The first row that matches applies."""


class ImageRegistryClient:
    """Pushes and pulls images.

    Args:
        clients: function that returns the calling thread's client of the engine with a timeout in seconds.
        stopping: once it is set, transfers end with CancelledRunError.
    """

    def __init__(self, clients: Callable[[int], Any], stopping: threading.Event) -> None:
        self._clients = clients
        self._stopping = stopping
        self._unreachable: str | None = None

    def push(self, name: str, target: str) -> str:
        """Push the image `name` as `target` (`HOST/PREFIX/env:TAG`) and return its manifest's digest, `sha256:...`.

        Raises:
            InputError: the registry rejects it, or there is no such image.
            Transient: it does not answer.
        """
        client, (repository, tag) = self._clients(TRANSFER_TIMEOUT), split_image_name(target)
        client.tag(name, repository, tag)
        try:
            events = self._check_events(client.push(repository, tag, stream=True, decode=True), target)
            digest = [event["aux"]["Digest"] for event in events if "Digest" in event.get("aux", ())]
        finally:
            client.remove_image(target, noprune=True)
        if not digest:
            raise Transient(f"{target} was pushed, but the engine returned no digest")
        return str(digest[-1])

    def pull_by_digest(self, reference: str, name: str) -> bool:
        """Pull `HOST/PREFIX/env@sha256:...` and tag it `name`; return False when the registry does not have it.

        Raises:
            InputError: the registry denies access, or serves other bytes.
            Transient: it does not answer.
        """
        client, (repository, _, digest) = self._clients(TRANSFER_TIMEOUT), reference.partition("@")
        is_present = _inspect_or_none(client, reference) is not None
        if not is_present:
            try:
                for _ in self._check_events(client.pull(repository, digest, stream=True, decode=True), reference):
                    pass
            except (*CONNECTION_ERRORS, MissingManifestError) as error:
                if _is_absent(error):
                    return False
                raise translate_registry_error(reference, _get_message(error)) from error
        client.tag(reference, *split_image_name(name))
        if not is_present:
            client.remove_image(reference, noprune=True)
        return True

    def has_manifest(self, reference: str) -> bool:
        """Return whether the registry has the manifest that `reference` names by digest.

        Raises:
            InputError: it denies access.
            Transient: it does not answer.
        """
        try:
            distribution = self._clients(TRANSFER_TIMEOUT).inspect_distribution(reference)
        except CONNECTION_ERRORS as error:
            if _is_absent(error):
                return False
            raise translate_registry_error(reference, _get_message(error)) from error
        return bool(distribution["Descriptor"]["digest"] == reference.partition("@")[2])

    def _check_events(self, events: Iterable[dict[str, Any]], reference: str) -> Iterator[dict[str, Any]]:
        for event in events:
            if self._stopping.is_set():
                raise CancelledRunError("stopped")
            if message := event.get("error"):
                raise (
                    MissingManifestError(message)
                    if ABSENT_PATTERN.search(message)
                    else translate_registry_error(reference, message)
                )
            yield event

    # --- by name, for bases --------------------------------------------------------------------------------------

    def pull(self, name: str, *, seconds: float) -> bool:
        """Pull an image by tag; return whether the registry answered within `seconds` and had it.

        A registry that was out of reach once is not queried again by this object: each attempt can take half a minute.
        """
        if self._unreachable is not None:
            return False
        events: queue.Queue[dict[str, Any] | Exception | None] = queue.Queue()
        threading.Thread(target=self._stream_pull, args=(name, events), daemon=True).start()
        timeout = seconds
        while True:
            try:
                event = events.get(timeout=timeout)
            except queue.Empty:
                event = TimeoutError(f"no answer in {timeout:.0f} s")
            if event is None:
                return True
            if isinstance(event, Exception) or "error" in event:
                message = str(event if isinstance(event, Exception) else event["error"])
                if "not found" not in message and "manifest unknown" not in message:
                    self._unreachable = message
                log.info("%s cannot be pulled: %s", name, message)
                return False
            timeout = TRANSFER_TIMEOUT

    def _stream_pull(self, name: str, events: queue.Queue[dict[str, Any] | Exception | None]) -> None:
        try:
            for event in self._clients(TRANSFER_TIMEOUT).pull(name, stream=True, decode=True):
                events.put(event)
        except Exception as error:  # noqa: BLE001 - raised in the thread that reads the events
            events.put(error)
        else:
            events.put(None)


class MissingManifestError(InputError):
    """The registry does not have the manifest."""


def translate_registry_error(reference: str, message: str) -> MergemillError:
    """Return the project's error for a message of a registry."""
    host = reference.partition("/")[0]
    row = next(row for row in _ERROR_TABLE if re.search(row[0], message, re.IGNORECASE))
    _, error_class, description, advice = row
    return error_class(f"{reference}: the registry {description}: {message.strip()}", advice=advice.format(host=host))


def translate_pull_error(reference: str, message: str) -> MergemillError:
    """Return the project's error for an image that a node of a cluster could not pull."""
    if ABSENT_PATTERN.search(message) and not _DENIED_PATTERN.search(message):
        return InputError(f"no such image: {reference}: {message}", advice="push it to the registry of the cluster")
    if _DENIED_PATTERN.search(message):
        advice = "name a secret with its credentials by --kubernetes-pull-secret"
        return InputError(f"{reference}: the registry denies access to the node: {message}", advice=advice)
    return translate_registry_error(reference, message)


def parse_registry(word: str) -> str:
    """Return `HOST/PREFIX` without a slash at its end.

    Raises:
        UsageError: the word is not of this form.
    """
    word = word.rstrip("/")
    if not _REGISTRY.fullmatch(word):
        raise UsageError(
            f"{word!r} is not a registry", advice="HOST/PREFIX in lower case, such as localhost:5000/tasks"
        )
    return word


def split_image_name(name: str) -> tuple[str, str]:
    """Return repository and tag of an image name; a colon before the last slash is part of the registry's address."""
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


def _inspect_or_none(client: Any, name: str) -> Any:
    try:
        return client.inspect_image(name)
    except CONNECTION_ERRORS as error:
        if _is_absent(error):
            return None
        raise


def _is_absent(error: Exception) -> bool:
    """Return whether the error is that of a missing manifest; some registries answer 404 for denied access, too."""
    is_denied = _DENIED_PATTERN.search(_get_message(error))
    status = getattr(error, "status_code", None)
    return isinstance(error, MissingManifestError) or (status == http.HTTPStatus.NOT_FOUND and not is_denied)


def _get_message(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error)
