"""Repositories of a list crawled side by side, ahead of the one whose turn it is.

A crawl writes only its own journal and clone, and mining reads those in the order of the list: what is found does not
depend on who was first. The repository whose turn it is goes on in the driver's thread, one that was begun from where
its thread left it. A failure waits for its turn, too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mergemill.errors import InputError
from miner.changes import Change
from miner.github.api import Api
from miner.github.reading import Reading

if TYPE_CHECKING:
    from backends.services import Services


class Ahead:
    """Reads the `github:` sources of a run through one API, `settings.github_ahead` of them ahead. A context manager.

    Nothing is asked before the first of them is read.
    """

    def __init__(self, sources: Sequence[str], services: Services) -> None:
        self.services = services
        self._sources = [source for source in sources if source.startswith("github:")]
        self._begun: dict[str, Future[Reading]] = {}
        self._api: Api | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._api:
            self._api.__exit__(kind, error, trace)  # sends away the threads that still ask
        for future in self._begun.values():
            if future.done() and not future.exception():
                future.result().close()

    def changes(self, source: str, services: Services, only: Sequence[str] = ()) -> Iterator[Change | InputError | str]:
        """As `changes_of_pull_requests`, for a source of the list when its turn has come."""
        del services, only
        self._api = self._api or Api(self.services.settings)
        self._api.require_token(source)
        begun = self._begun.pop(source, None)
        self._begin_next(source)
        reading = begun.result() if begun else Reading(source, self.services, self._api)
        try:
            yield from reading.changes()
        finally:
            reading.close()

    def _begin_next(self, source: str) -> None:
        """Begin with those that come after `source`, each in a thread."""
        at = self._sources.index(source) + 1 if source in self._sources else len(self._sources)
        for following in self._sources[at : at + self.services.settings.github_ahead]:
            if following not in self._begun:
                future = self._begun[following] = Future[Reading]()
                # A thread that a process need not wait for: Ctrl-C ends it, and the journal is whole at any moment.
                threading.Thread(target=self._begin, args=(following, future), daemon=True).start()

    def _begin(self, source: str, future: Future[Reading]) -> None:
        assert self._api is not None  # noqa: S101 - the caller made it
        reading = Reading(source, self.services, self._api)
        try:
            reading.begin(ahead=True)
        except BaseException as error:  # noqa: BLE001 - told when it is the source's turn
            reading.close()
            future.set_exception(error)
        else:
            future.set_result(reading)
