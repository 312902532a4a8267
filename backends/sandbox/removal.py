"""Removes containers behind the caller's back."""

from __future__ import annotations

import contextlib
import http
import http.client
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import requests
import urllib3

log = logging.getLogger(__name__)

AWAY = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)
_T = TypeVar("_T")


class Removal:
    """`clients` gives the calling thread's client.

    What stays, because the engine is away, is tried again after the next removal that works; so it only logs.
    """

    def __init__(self, clients: Callable[[], Any]) -> None:
        self._clients = clients
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="mergemill-remove")
        self._under_way: set[Future[bool]] = set()
        self._left: list[str] = []

    def later(self, container: Callable[[], str]) -> None:
        """Have a container removed in the background.

        `container` gives its id, may wait for it, and raises where it has come to nothing.
        """
        self._submit(self._when_known, container)

    def _submit(self, work: Callable[[_T], bool], what: _T) -> None:
        future = self._threads.submit(work, what)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)

    def _when_known(self, container: Callable[[], str]) -> bool:
        try:
            found = container()
        except Exception as error:  # noqa: BLE001 - whoever wanted it has been told
            log.info("no container to remove: %s", error)
            return True
        return self.now(found)

    def now(self, container: str) -> bool:
        """Remove a container, running or not; whether it is gone."""
        try:
            self._clients().remove_container(container, force=True, v=True)
        except AWAY as error:
            # 404: gone. 409: somebody else is at it.
            status = getattr(error, "status_code", None)
            if status not in {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT}:
                log.info("container %s stays for now: %s", container[:12], error)
                self._left.append(container)
                return False
        with contextlib.suppress(IndexError):  # another thread may have taken the last
            while True:
                self._submit(self.now, self._left.pop())
        return True

    def flush(self) -> None:
        """Wait until the containers given so far are gone."""
        wait(list(self._under_way))
