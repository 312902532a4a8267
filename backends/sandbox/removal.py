"""Removes containers in the background."""

from __future__ import annotations

import contextlib
import http
import http.client
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import requests
import urllib3

log = logging.getLogger(__name__)

CONNECTION_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)
_T = TypeVar("_T")


class ContainerRemover:
    """Removes containers.

    `remove_container` is given the id of a container, which may run, and may raise CONNECTION_ERRORS.

    A removal that fails is only logged; it is retried after the next that succeeds.
    """

    def __init__(self, remove_container: Callable[[str], None]) -> None:
        self._remove_container = remove_container
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="mergemill-remove")
        self._pending: set[Future[bool]] = set()
        self._failed: list[str] = []

    def remove_later(self, container: Callable[[], str]) -> None:
        """Remove a container in the background.

        `container` returns its id, may wait for it, and raises where the container could not be created.
        """
        self._submit(self._remove_when_known, container)

    def _submit(self, work: Callable[[_T], bool], argument: _T) -> None:
        future = self._threads.submit(work, argument)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)

    def _remove_when_known(self, container: Callable[[], str]) -> bool:
        try:
            container_id = container()
        except Exception as error:  # noqa: BLE001 - the caller of the failed creation has the error
            log.info("no container to remove: %s", error)
            return True
        return self.remove(container_id)

    def remove(self, container: str) -> bool:
        """Remove a container, running or not; return whether it is gone."""
        try:
            self._remove_container(container)
        except CONNECTION_ERRORS as error:
            # 404: it is gone. 409: it is being removed.
            status = getattr(error, "status_code", None)
            if status not in {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT}:
                log.info("container %s is not removed yet: %s", container, error)
                self._failed.append(container)
                return False
        with contextlib.suppress(IndexError):  # another thread may have popped the last
            while True:
                self._submit(self.remove, self._failed.pop())
        return True

    def flush(self) -> None:
        """Wait until the containers passed so far are removed."""
        wait(list(self._pending))
