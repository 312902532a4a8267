"""Registries, through the engine: it does the talking, with its own TLS set-up and the user's docker credentials.

An image travels under a name of the registry's, `HOST/PREFIX/env:TAG`, which the engine does not keep afterwards: here
it has its own name, which is the same everywhere. What is fetched is named by the digest of its manifest, so the engine
itself refuses other bytes.
"""

from __future__ import annotations

import http
import logging
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from backends.sandbox.removal import AWAY
from mergemill.errors import InputError, MergemillError, Stopped, Transient

log = logging.getLogger(__name__)

SLOW_SECONDS = 1800
"""How long the engine may be silent while it moves whole images."""
ABSENT = re.compile(r"manifest unknown|name unknown|not found", re.IGNORECASE)
_TROUBLE: tuple[tuple[str, type[MergemillError], str, str], ...] = (
    ("no space left", Transient, "the disk is full", "free disk space, for example: mergemill images prune"),
    ("verification failed", InputError, "holds something else under that digest", "push the image again"),
    ("unauthorized|authentication|denied|basic auth", InputError, "does not let us in", "docker login {host}"),
    ("invalid reference|invalid repository", InputError, "cannot be named so", "--registry HOST/PREFIX"),
    ("", Transient, "does not answer", "the same command goes on later"),
)
"""What is said (a pattern), the error it is, how it is told and what to do about it; the first that fits."""


class Registry:
    """`clients` gives the calling thread's client of the engine that waits so many seconds; `stopping` ends it all."""

    def __init__(self, clients: Callable[[int], Any], stopping: threading.Event) -> None:
        self._clients = clients
        self._stopping = stopping
        self._unreachable: str | None = None

    def push(self, name: str, target: str) -> str:
        """Push the image `name` as `target` (`HOST/PREFIX/env:TAG`); the digest of its manifest, `sha256:...`.

        Raises:
            InputError: the registry refuses it, or there is no such image.
            Transient: it does not answer.
        """
        client, (repository, tag) = self._clients(SLOW_SECONDS), split(target)
        client.tag(name, repository, tag)
        try:
            events = self._events(client.push(repository, tag, stream=True, decode=True), target)
            digest = [event["aux"]["Digest"] for event in events if "Digest" in event.get("aux", ())]
        finally:
            client.remove_image(target, noprune=True)
        if not digest:
            raise Transient(f"{target} was pushed and the engine names no digest")
        return str(digest[-1])

    def fetch(self, reference: str, name: str) -> bool:
        """Pull `HOST/PREFIX/env@sha256:...` and call it `name`; False when the registry has no such thing (any more).

        Raises:
            InputError: the registry refuses it, or holds other bytes.
            Transient: it does not answer.
        """
        client, (repository, _, digest) = self._clients(SLOW_SECONDS), reference.partition("@")
        here = _inspected(client, reference) is not None
        if not here:
            try:
                for _ in self._events(client.pull(repository, digest, stream=True, decode=True), reference):
                    pass
            except (*AWAY, _AbsentError) as error:
                if _absent(error):
                    return False
                raise trouble(reference, _text(error)) from error
        client.tag(reference, *split(name))
        if not here:
            client.remove_image(reference, noprune=True)
        return True

    def has(self, reference: str) -> bool:
        """Whether the registry has the manifest that `reference` names by its digest.

        Raises:
            InputError: it does not let us in.
            Transient: it does not answer.
        """
        try:
            told = self._clients(SLOW_SECONDS).inspect_distribution(reference)
        except AWAY as error:
            if _absent(error):
                return False
            raise trouble(reference, _text(error)) from error
        return bool(told["Descriptor"]["digest"] == reference.partition("@")[2])

    def _events(self, events: Iterable[dict[str, Any]], reference: str) -> Iterator[dict[str, Any]]:
        for event in events:
            if self._stopping.is_set():
                raise Stopped("stopped")
            if said := event.get("error"):
                raise _AbsentError(said) if ABSENT.search(said) else trouble(reference, said)
            yield event

    # --- by name, for bases --------------------------------------------------------------------------------------

    def pull(self, name: str, *, seconds: float) -> bool:
        """Whether the registry answered within `seconds` and had the image.

        A registry that was out of reach once is not asked again by this object: each try can cost half a minute.
        """
        if self._unreachable is not None:
            return False
        events: queue.Queue[dict[str, Any] | Exception | None] = queue.Queue()
        threading.Thread(target=self._pull, args=(name, events), daemon=True).start()
        patience = seconds
        while True:
            try:
                event = events.get(timeout=patience)
            except queue.Empty:
                event = TimeoutError(f"no answer in {patience:.0f} s")
            if event is None:
                return True
            if isinstance(event, Exception) or "error" in event:
                said = str(event if isinstance(event, Exception) else event["error"])
                if "not found" not in said and "manifest unknown" not in said:
                    self._unreachable = said
                log.info("%s cannot be pulled: %s", name, said)
                return False
            patience = SLOW_SECONDS

    def _pull(self, name: str, events: queue.Queue[dict[str, Any] | Exception | None]) -> None:
        try:
            for event in self._clients(SLOW_SECONDS).pull(name, stream=True, decode=True):
                events.put(event)
        except Exception as error:  # noqa: BLE001 - whoever waits for the events is told
            events.put(error)
        else:
            events.put(None)


class _AbsentError(InputError):
    """The registry says that it has no such thing."""


def trouble(reference: str, said: str) -> MergemillError:
    """What a registry, or the engine of it, said, in this program's words."""
    host = reference.partition("/")[0]
    found = next(row for row in _TROUBLE if re.search(row[0], said, re.IGNORECASE))
    _, kind, told, advice = found
    return kind(f"{reference}: the registry {told}: {said.strip()}", advice=advice.format(host=host))


def split(name: str) -> tuple[str, str]:
    """Repository and tag of an image name; a colon before the last slash belongs to the registry."""
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


def _inspected(client: Any, name: str) -> Any:
    try:
        return client.inspect_image(name)
    except AWAY as error:
        if _absent(error):
            return None
        raise


def _absent(error: Exception) -> bool:
    """Whether an error says that something is not there. Who may not look is told so, too, by some registries."""
    refused = re.search("denied|unauthorized", _text(error), re.IGNORECASE)
    status = getattr(error, "status_code", None)
    return isinstance(error, _AbsentError) or (status == http.HTTPStatus.NOT_FOUND and not refused)


def _text(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error)
