"""Crawl the repositories of a list in parallel, ahead of the repository being mined.

A crawl writes only its own journal and clone, and mining reads those in the order of the list: results do not depend on
timing. The repository being mined continues in the main thread where its prefetch thread stopped. A failure is raised
when the repository is mined.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Self

from core.errors import InputError
from miner.changes import Change
from miner.github.api import GitHubApi
from miner.github.reader import GitHubReader

if TYPE_CHECKING:
    from backends.services import Services


class CrawlPrefetcher:
    """Reader of the `github:` sources of a run through one API client, `settings.github.ahead` of them ahead.

    A context manager. Nothing is requested before the first source is read.
    """

    def __init__(self, sources: Sequence[str], services: Services) -> None:
        self.services = services
        self._sources = [source for source in sources if source.startswith("github:")]
        self._begun: dict[str, Future[GitHubReader]] = {}
        self._api: GitHubApi | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._api:
            self._api.__exit__(kind, error, trace)  # cancels the threads
        for future in self._begun.values():
            if future.done() and not future.exception():
                future.result().close()

    def read_changes(
        self, source: str, services: Services, only: Sequence[str] = ()
    ) -> Iterator[Change | InputError | str]:
        """Read the changes of a source of the list; see `read_pull_requests`."""
        del services, only
        self._api = self._api or GitHubApi(self.services.settings.github, self.services.settings.host)
        self._api.require_token(source)
        begun = self._begun.pop(source, None)
        self._start_next(source)
        reading = begun.result() if begun else GitHubReader(source, self.services, self._api)
        try:
            yield from reading.read_changes()
        finally:
            reading.close()

    def _start_next(self, source: str) -> None:
        """Start prefetching the sources after `source`, each in a thread."""
        at = self._sources.index(source) + 1 if source in self._sources else len(self._sources)
        for following in self._sources[at : at + self.services.settings.github.ahead]:
            if following not in self._begun:
                future = self._begun[following] = Future[GitHubReader]()
                # Daemon threads: Ctrl-C ends them, and the journal is consistent at any moment.
                threading.Thread(target=self._start, args=(following, future), daemon=True).start()

    def _start(self, source: str, future: Future[GitHubReader]) -> None:
        assert self._api is not None  # noqa: S101 - the caller made it
        reading = GitHubReader(source, self.services, self._api)
        try:
            reading.start(ahead=True)
        except BaseException as error:  # noqa: BLE001 - raised when the source is mined
            reading.close()
            future.set_exception(error)
        else:
            future.set_result(reading)
