"""Crawl a repository's merged pull requests, page by page, into its journal.

Pages are ordered by date of update, newest first. A crawl begins at the top and continues below the part that was read
before; the hole that an interrupted crawl left is read first. A merged pull request is updated when it is merged or
later, so everything merged after the lowest date read (`frontier`) is known before the crawl is complete: that is how
`--limit` stops after few pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.errors import Transient
from miner.github.api import RATE_LIMIT_FIELDS, GitHubApi
from miner.github.journal import BEFORE_ALL_DATES, CrawlJournal, CrawlSpan, MergedPull
from miner.github.page_size import AdaptivePageSize
from miner.github.queries import load_query
from miner.github.repository_folders import RepositoryFolders
from miner.github.responses import RETRY_ADVICE, PageTooLargeError, StaleCursorError

PAGE_SIZE = 49
"""Pull requests per page: the most that cost a point (see `queries/pulls.graphql`)."""


@dataclass(frozen=True, slots=True)
class PullRequestPage:
    """A page of an answer."""

    repository: dict[str, Any]
    pulls: list[MergedPull]
    newest_update: str
    oldest_update: str
    """Update dates at the page's ends."""
    cursor: str | None

    @classmethod
    def from_answer(cls, repository: dict[str, Any], size: int) -> PullRequestPage:
        """Parse the page of an answer.

        Raises:
            PageTooLargeError: GitHub left something out.
        """
        pull_requests = repository["pullRequests"]
        nodes = [node for node in pull_requests["nodes"] if node]
        if len(nodes) < len(pull_requests["nodes"]) and size > 1:
            raise PageTooLargeError("GitHub left out some pull requests", advice=RETRY_ADVICE)
        about = {key: value for key, value in repository.items() if key != "pullRequests"}
        more = pull_requests["pageInfo"]
        return cls(
            about,
            [MergedPull(node["number"], node["mergedAt"], node) for node in nodes if node["mergedAt"]],
            newest_update=nodes[0]["updatedAt"] if nodes else BEFORE_ALL_DATES,
            oldest_update=nodes[-1]["updatedAt"] if nodes else BEFORE_ALL_DATES,
            cursor=more["endCursor"] if more["hasNextPage"] else None,
        )


class PullRequestCrawl:
    """Crawl of a repository. `open` fetches the first page, `fetch_next_page` each further page."""

    def __init__(self, api: GitHubApi, journal: CrawlJournal, name: str, pace: AdaptivePageSize) -> None:
        self.api = api
        self.journal = journal
        self.name = name
        """`owner/name` for requests: the most recent name from GitHub."""
        self.pace = pace
        self.new = 0
        """Number of merged pull requests that were new to the journal."""
        self.names: list[str] = []
        """All names of the repository, the first name first."""
        self.repository: dict[str, Any] = {}
        """GitHub's last answer about the repository."""

    @classmethod
    def open(cls, name: str, api: GitHubApi, home: RepositoryFolders) -> PullRequestCrawl:
        """Fetch the first page, and open the journal of the repository.

        Raises:
            GitHubNotFoundError: there is no such repository, or the tokens cannot read it.
            InputError, MachineError, Transient: as in `GitHubApi.query_graphql` and `CrawlJournal.open`.
        """
        known = home.find_by_name(name)
        if known:
            with CrawlJournal.open(known) as journal:
                pace = AdaptivePageSize.from_state(journal.get_state("pace"), PAGE_SIZE)
        else:
            pace = AdaptivePageSize.from_state(None, PAGE_SIZE)
        page = _fetch_page(api, name, None, pace)
        folder = home.folder_of(page.repository["id"])
        crawl = cls(api, CrawlJournal.open(folder), name, pace)
        try:
            crawl.names = crawl.journal.get_state("names", [])
            crawl._store_page(page, page.newest_update)
            for alias in (name, *crawl.names):
                home.link_name(alias, folder)
        except BaseException:
            crawl.journal.close()
            raise
        return crawl

    @property
    def first_name(self) -> str:
        """`owner/name` under which it was first mined: the name in records."""
        return self.names[0]

    @property
    def frontier(self) -> str:
        """Everything merged after this date is known; `BEFORE_ALL_DATES` at the end of the list."""
        top = self.journal.newest_span()
        return top.low if top else BEFORE_ALL_DATES

    def fetch_next_page(self) -> None:
        """Fetch the next page below the contiguous part; do nothing when there is none.

        Raises:
            GitHubNotFoundError: the repository was deleted in the meantime.
            InputError, MachineError, Transient: as in `GitHubApi.query_graphql`.
        """
        top = self.journal.newest_span()
        if top is None or top.is_complete:
            return
        try:
            page = _fetch_page(self.api, self.name, top.cursor, self.pace)
        except StaleCursorError:
            page = self._fetch_page_below(top.low)
        if page.repository["id"] != self.repository["id"]:
            raise Transient(f"{self.name} became another repository in the meantime", advice=RETRY_ADVICE)
        self._store_page(page, top.low)

    def _fetch_page_below(self, date: str) -> PullRequestPage:
        """Fetch the page with the last updates before a date, by paging from the top."""
        page = _fetch_page(self.api, self.name, None, self.pace)
        while page.oldest_update >= date and page.cursor:
            page = _fetch_page(self.api, self.name, page.cursor, self.pace)
        return page

    def _store_page(self, page: PullRequestPage, high: str) -> None:
        """Write a page that was requested below `high`."""
        self.repository, self.name = page.repository, page.repository["nameWithOwner"]
        self.names = list(dict.fromkeys([*self.names, self.name]))
        low = BEFORE_ALL_DATES if page.cursor is None else page.oldest_update
        span = CrawlSpan(high, low, page.cursor) if page.pulls or high else None
        self.new += self.journal.add_page(page.pulls, span, pace=self.pace.to_state(), names=self.names)


def _fetch_page(api: GitHubApi, name: str, after: str | None, pace: AdaptivePageSize) -> PullRequestPage:
    owner, _, short = name.partition("/")
    query = load_query("pulls").replace("{RATE}", RATE_LIMIT_FIELDS)

    def ask(size: int) -> PullRequestPage:
        variables = {"owner": owner, "name": short, "size": size, "after": after}
        return PullRequestPage.from_answer(
            api.query_graphql(query, variables, what=f"github:{name}").data["repository"], size
        )

    return pace.request(ask, sleep=api.pool.pause, pause=api.first_pause)
