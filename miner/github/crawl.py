"""Reading a repository's merged pull requests, page by page, into its journal.

Pages come by date of update, newest first. A crawl begins at the top and goes on below what was read before; where an
earlier one was interrupted, that hole is read first. A merged pull request's last update is its merge or later, so what
was merged after the lowest date read (`frontier`) is known completely, although the crawl is not at its end: that is
how `--limit` can stop after few pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mergemill.errors import Transient
from miner.github.api import RATE, Api
from miner.github.home import Home
from miner.github.pace import Pace
from miner.github.queries import load
from miner.github.replies import AGAIN, StaleCursor, TooMuch
from taskdb.journal import BEGINNING, Journal, Pull, Span

PAGE = 49
"""Pull requests of a page: the most that cost one point (see `queries/pulls.graphql`)."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it was answered."""

    repository: dict[str, Any]
    pulls: list[Pull]
    first: str
    last: str
    """Dates of update of the page's ends."""
    cursor: str | None

    @classmethod
    def of(cls, repository: dict[str, Any], size: int) -> Page:
        """The page of an answer.

        Raises:
            TooMuch: GitHub left something out.
        """
        found = repository["pullRequests"]
        nodes = [node for node in found["nodes"] if node]
        if len(nodes) < len(found["nodes"]) and size > 1:
            raise TooMuch("GitHub left out some pull requests", advice=AGAIN)
        about = {key: value for key, value in repository.items() if key != "pullRequests"}
        more = found["pageInfo"]
        return cls(
            about, [Pull(node["number"], node["mergedAt"], node) for node in nodes if node["mergedAt"]],
            first=nodes[0]["updatedAt"] if nodes else BEGINNING, last=nodes[-1]["updatedAt"] if nodes else BEGINNING,
            cursor=more["endCursor"] if more["hasNextPage"] else None,
        )  # fmt: skip


class Crawl:
    """The crawl of one repository. Made by `begin`, which asks for the first page; `step` asks for one more."""

    def __init__(self, api: Api, journal: Journal, name: str, pace: Pace) -> None:
        self.api = api
        self.journal = journal
        self.name = name
        """`owner/name` to ask by: the one that GitHub gave last."""
        self.pace = pace
        self.new = 0
        """Merged pull requests that the journal had not."""
        self.names: list[str] = []
        """All names that the repository had, the first one first."""
        self.repository: dict[str, Any] = {}
        """What GitHub said of the repository last."""

    @classmethod
    def begin(cls, name: str, api: Api, home: Home) -> Crawl:
        """Ask for the top of the list, and open the journal that it belongs into.

        Raises:
            Gone: there is no such repository, or none that the tokens may see.
            InputError, MachineError, Transient: as in `Api.graphql`, `Journal.open`.
        """
        known = home.known(name)
        if known:
            with Journal.open(known) as journal:
                pace = Pace.of(journal.get("pace"), PAGE)
        else:
            pace = Pace.of(None, PAGE)
        page = _ask(api, name, None, pace)
        folder = home.of(page.repository["id"])
        crawl = cls(api, Journal.open(folder), name, pace)
        try:
            crawl.names = crawl.journal.get("names", [])
            crawl._keep(page, page.first)
            for alias in (name, *crawl.names):
                home.remember(alias, folder)
        except BaseException:
            crawl.journal.close()
            raise
        return crawl

    @property
    def first_name(self) -> str:
        """`owner/name` as it was when it was first mined: the name that records bear."""
        return self.names[0]

    @property
    def frontier(self) -> str:
        """What was merged after this date is known, all of it; `BEGINNING` at the end of the list."""
        top = self.journal.top()
        return top.low if top else BEGINNING

    def step(self) -> None:
        """Ask for the next page below what is read without a hole; nothing when there is none.

        Raises:
            Gone: the repository vanished in between.
            InputError, MachineError, Transient: as in `Api.graphql`.
        """
        top = self.journal.top()
        if top is None or top.complete:
            return
        try:
            page = _ask(self.api, self.name, top.cursor, self.pace)
        except StaleCursor:
            page = self._page_below(top.low)
        if page.repository["id"] != self.repository["id"]:
            raise Transient(f"{self.name} became another repository in the meantime", advice=AGAIN)
        self._keep(page, top.low)

    def _page_below(self, date: str) -> Page:
        """The page that holds what was updated just before a date, by way of all pages above it."""
        page = _ask(self.api, self.name, None, self.pace)
        while page.last >= date and page.cursor:
            page = _ask(self.api, self.name, page.cursor, self.pace)
        return page

    def _keep(self, page: Page, high: str) -> None:
        """Write a page that was asked for below `high`."""
        self.repository, self.name = page.repository, page.repository["nameWithOwner"]
        self.names = list(dict.fromkeys([*self.names, self.name]))
        low = BEGINNING if page.cursor is None else page.last
        span = Span(high, low, page.cursor) if page.pulls or high else None
        self.new += self.journal.keep(page.pulls, span, pace=self.pace.kept(), names=self.names)


def _ask(api: Api, name: str, after: str | None, pace: Pace) -> Page:
    owner, _, short = name.partition("/")
    query = load("pulls").replace("{RATE}", RATE)

    def ask(size: int) -> Page:
        variables = {"owner": owner, "name": short, "size": size, "after": after}
        return Page.of(api.graphql(query, variables, what=f"github:{name}").data["repository"], size)

    return pace.ask(ask, sleep=api.pool.pause, pause=api.first_pause)
