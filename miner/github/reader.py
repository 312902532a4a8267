"""Read a repository: crawl, journal and clone joined to changes, newest merge first.

Pull requests are yielded in chunks of doubling size, as soon as the crawl guarantees that no newer pull request is
missing; discussions are fetched per chunk. So a `--limit` costs few requests, and a whole repository few per pull
request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.clones import open_checked
from backends.git import EMPTY_TREE, GitRepository
from core.errors import InputError
from miner.changes import Change, Reason
from miner.git.clone import CloneReader, open_reader
from miner.git.diffs import read_raw_diffs
from miner.github import changelog_lines
from miner.github.api import GitHubRepository as About
from miner.github.crawl import PullRequestCrawl
from miner.github.discussions import DiscussionFetcher
from miner.github.graph import CommitGraph
from miner.github.journal import BEFORE_ALL_DATES, MergedPull
from miner.github.links import ChangeText, find_links, parse_fragment_number
from miner.github.merges import MergedPullRequest, MergeFinder
from miner.github.record import PullRequestFacts, build_pull_request
from miner.github.repository_folders import RepositoryFolders
from taskdb.records.discussion import IssueLink, LinkOrigin

if TYPE_CHECKING:
    from backends.services import Services
    from miner.git.diffs import FileChanges
    from miner.github.api import GitHubApi

FIRST, MOST = 20, 400
"""Smallest size of the first chunk and largest size of any, in pull requests."""


class GitHubReader:
    """Reader of a `github:` source; to be closed. `start` may run in another thread than `read_changes`."""

    def __init__(self, source: str, services: Services, api: GitHubApi) -> None:
        self.services = services
        self.api = api
        self.requested_name = source.partition(":")[2]
        self._open = ExitStack()
        self._crawl: PullRequestCrawl | None = None
        self._clone: tuple[CloneReader, CommitGraph] | None = None

    def close(self) -> None:
        """Close the journal and release the clone."""
        self._open.close()
        if self._crawl:
            self._crawl.journal.close()

    def start(self, *, ahead: bool = False) -> None:
        """Fetch the first page; with `ahead` (and without a limit) all needed pages, and the clone.

        Raises:
            InputError, MachineError, Transient: as in `PullRequestCrawl.open` and `CloneStore.fetch_forge`.
        """
        if self._crawl is None:
            folders = RepositoryFolders(self.services.clones.folder)
            self._crawl = PullRequestCrawl.open(self.requested_name, self.api, folders)
        if ahead:
            while self.services.settings.source.limit is None and not self._read_far_enough():
                self._crawl.fetch_next_page()
            self._fetch_if_needed()

    @property
    def crawl(self) -> PullRequestCrawl:
        """The crawl, after `start`."""
        if self._crawl is None:
            self.start()
        assert self._crawl is not None  # noqa: S101 - begin makes it
        return self._crawl

    def read_changes(self) -> Iterator[Change | InputError | str]:
        """Yield every merged pull request between `since` and `until`, newest merge first, and messages for the user.

        Raises:
            InputError, MachineError, Transient: as in `PullRequestCrawl.fetch_next_page`, `DiscussionFetcher.fetch` and
                `CloneStore.fetch_forge`.
        """
        crawl = self.crawl
        yield from self._report_peculiarities()
        for chunk in self._split_chunks():
            yield from self._build_changes(chunk, *self._open_clone())
        known = crawl.journal.count_pulls()
        yield f"github:{crawl.first_name}: {known} merged pull requests known, {crawl.new} of them new"

    def _report_peculiarities(self) -> Iterator[str]:
        """Yield messages on the facts that are unusual about the repository."""
        about, source = self.crawl.repository, f"github:{self.crawl.first_name}"
        if about["nameWithOwner"].lower() != self.crawl.first_name.lower():
            yield f"{source} is now called {about['nameWithOwner']}; its records keep the first name"
        if about["isFork"] and about["parent"]:
            yield f"{source} is a fork of {about['parent']['nameWithOwner']}: only its own pull requests are mined"
        if about["isArchived"]:
            yield f"{source} is archived"
        if self.crawl.journal.newest_span() is None:
            yield f"{source} has no merged pull requests"

    # -------------------------------------------------------------------------------------------------- chunks

    def _split_chunks(self) -> Iterator[list[MergedPull]]:
        """Yield chunks of pull requests that no newer pull request can precede, each larger than the previous."""
        below, want = None, FIRST
        while True:
            while self._select_final(below) < want and not self._read_far_enough():
                self.crawl.fetch_next_page()
            chunk = list(self._select_newest(below, MOST))
            if not chunk:
                return
            yield chunk
            below, want = (chunk[-1].merged_at, chunk[-1].number), min(want * 2, MOST)

    def _read_far_enough(self) -> bool:
        frontier = self.crawl.frontier
        return frontier == BEFORE_ALL_DATES or frontier < self._format_since

    @property
    def _format_since(self) -> str:
        since = self.services.settings.source.since
        return since.isoformat() if since else BEFORE_ALL_DATES

    @property
    def _format_until(self) -> str:
        until = self.services.settings.source.until
        return (until + timedelta(days=1)).isoformat() if until else ""

    def _select_final(self, below: tuple[str, int] | None) -> int:
        return self.crawl.journal.count_pulls(
            frontier=self.crawl.frontier, since=self._format_since, until=self._format_until, below=below
        )

    def _select_newest(self, below: tuple[str, int] | None, most: int) -> Iterator[MergedPull]:
        return self.crawl.journal.iter_newest(
            frontier=self.crawl.frontier, since=self._format_since, until=self._format_until, below=below, most=most
        )

    # --------------------------------------------------------------------------------------------------- clone

    def _open_clone(self) -> tuple[CloneReader, CommitGraph]:
        """Return the clone and its commit graph; both are read again after a fetch."""
        if self._fetch_if_needed() or self._clone is None:
            repository = open_checked(self._open_local_clone or self._clone_path)
            self._open.close()
            graph = CommitGraph(repository, self._fetch_default_branch.get("name"))
            self._clone = (self._open.enter_context(open_reader(repository)), graph)
        return self._clone

    def _fetch_if_needed(self) -> bool:
        """Fetch when the clone lacks something that the API reported; return whether it was fetched."""
        journal = self.crawl.journal
        newest = next((pull.merged_at for pull in journal.iter_newest(most=1)), "")
        if self._open_local_clone or not newest or not self._is_stale(newest):
            return False
        about = self.api.fetch_repository(self.crawl.name, self._read_previous_repository())
        token = self.api.find_git_token() if about.private else None
        head = self._fetch_default_branch.get("name") or about.default_branch
        self.services.clones.fetch_forge(self._clone_path, about.clone_url, head=head, token=token)
        journal.put_state(fetched=newest, about=asdict(about), server=self.api.server)
        return True

    def _read_previous_repository(self) -> About | None:
        """Return the answer about the repository that was stored at the last fetch from the same server."""
        about = self.crawl.journal.get_state("about")
        # An earlier version may have stored other fields, and an etag is valid only for the server that gave it.
        whole = about and about.keys() == {field.name for field in fields(About)}
        return About(**about) if whole and self.crawl.journal.get_state("server") == self.api.server else None

    def _is_stale(self, newest: str) -> bool:
        """Return whether the clone is older than the newest merge, or lacks the tip of the default branch."""
        fetched = self.crawl.journal.get_state("fetched")
        if fetched is None or newest > fetched or not self._clone_path.exists():
            return True
        tip = (self._fetch_default_branch.get("target") or {}).get("oid")
        return self._clone is None and tip is not None and not GitRepository(self._clone_path).has_commit(tip)

    @property
    def _fetch_default_branch(self) -> dict[str, Any]:
        """Fetch the default branch; {} when the repository is empty."""
        return self.crawl.repository["defaultBranchRef"] or {}

    @property
    def _clone_path(self) -> Path:
        return self.crawl.journal.folder / "repo.git"

    @property
    def _open_local_clone(self) -> Path | None:
        """Return the user's own clone, if any."""
        clones = (self.services.clones.find_local_clone(name) for name in self.crawl.names)
        return next((path for path in clones if path), None)

    # -------------------------------------------------------------------------------------------------- joined

    def _build_changes(self, chunk: Sequence[MergedPull], clone: CloneReader, graph: CommitGraph) -> Iterator[Change]:
        """Build the changes of a chunk; their discussions are fetched together."""
        repository = clone.repository
        discussions = DiscussionFetcher(self.api, self.crawl.journal, self.crawl.name)
        merged = list(MergeFinder(repository, graph).find_merges(chunk))
        in_clone = [merge for merge in merged if _is_in_clone(merge)]
        files_of = dict(
            zip(map(id, in_clone), read_raw_diffs(repository, ((m.merge, m.base) for m in in_clone)), strict=True)
        )
        files = [files_of.get(id(merge), ()) for merge in merged]
        entries = changelog_lines.read_added_lines(
            repository, ((m.merge, m.base, f) for m, f in zip(merged, files, strict=True))
        )
        facts = [self._collect_facts(*parts, discussions) for parts in zip(merged, files, entries, strict=True)]
        discussions.fetch((i for fact in facts for i in fact.issues), (t for fact in facts for t in fact.threads))
        for fact, touched in zip(facts, files, strict=True):
            answers = self.crawl.journal.get_answers(fact.journal_keys)
            first = self.crawl.first_name
            request = build_pull_request(
                fact, answers, source=f"github:{first}", repo=first, keep=self.services.artifacts.put_text
            )
            yield clone.build_change(request, touched, fact.merged.rejection)

    def _collect_facts(
        self, merged: MergedPullRequest, files: FileChanges, entry: str, discussions: DiscussionFetcher
    ) -> PullRequestFacts:
        """Collect the issues linked from a pull request and its review threads."""
        pull, repo = merged.pull, self.crawl.first_name
        own = {name.lower() for name in self.crawl.names}
        forge = (IssueLink(issue=issue, origin=LinkOrigin.FORGE) for issue in discussions.list_closed_issues(pull))
        messages = "\n\n".join(commit.message for commit in reversed(merged.commits) if len(commit.parents) < 2)
        texts = (
            ChangeText(LinkOrigin.TITLE, pull.body["title"]),
            ChangeText(LinkOrigin.BODY, pull.body["body"]),
            ChangeText(LinkOrigin.COMMIT, messages),
            ChangeText(LinkOrigin.CHANGELOG, entry, markdown=False),
        )
        named = find_links(texts, repo, pull.number, server=self.crawl.repository["url"])
        fragments = _collect_fragments(files, repo)
        whole = {(link.issue, link.origin): link for link in (*forge, *named, *fragments)}
        plain = (
            link.model_copy(update={"issue": _canonicalize_issue(link.issue, own, repo)}) for link in whole.values()
        )
        return PullRequestFacts(merged, tuple(plain), discussions.list_threads(pull))


def _is_in_clone(merged: MergedPullRequest) -> bool:
    """Return whether the clone contains the merge commit."""
    return merged.merge != EMPTY_TREE and (
        merged.rejection is None or merged.rejection[0] is not Reason.NO_MERGE_COMMIT
    )


def _collect_fragments(files: FileChanges, repo: str) -> Iterator[IssueLink]:
    for file in files:
        number = parse_fragment_number(file.new_path) if file.status == "A" else None
        if number:
            closes = ".bug" in file.new_path or ".fix" in file.new_path
            yield IssueLink(issue=f"{repo}#{number}", origin=LinkOrigin.CHANGELOG, quote=file.new_path, closes=closes)


def _canonicalize_issue(issue: str, own: set[str], repo: str) -> str:
    """Return the issue under the name used in records, whichever name of the repository a text has."""
    name, _, number = issue.partition("#")
    return f"{repo}#{number}" if name.lower() in own else issue
