"""One repository being mined: its crawl, its journal and its clone, joined to changes, newest merge first.

Pull requests are told in chunks that double, as soon as the crawl has made sure that nothing newer is missing; what
people said is asked for a chunk at a time. So a `--limit` costs few requests, and a whole repository few as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.clones import checked
from backends.git import EMPTY_TREE, Repository
from mergemill.errors import InputError
from miner.changes import Change, Reason
from miner.git.clone import CloneReader, reading
from miner.git.diffs import raw_diffs
from miner.github import entries
from miner.github.api import Repository as About
from miner.github.crawl import Crawl
from miner.github.graph import Graph
from miner.github.home import Home
from miner.github.links import Said, fragment_number, links
from miner.github.merges import Merged, Merges
from miner.github.record import Facts, record
from miner.github.talk import Talk
from taskdb.discussion import IssueLink, LinkOrigin
from taskdb.journal import BEGINNING, Pull

if TYPE_CHECKING:
    from backends.services import Services
    from miner.git.diffs import Files
    from miner.github.api import Api

FIRST, MOST = 20, 400
"""Pull requests of the first chunk, at least, and of any, at most."""


class Reading:
    """The reading of one `github:` source. `begin` may happen in another thread than `changes`; to be closed."""

    def __init__(self, source: str, services: Services, api: Api) -> None:
        self.services = services
        self.api = api
        self.asked = source.partition(":")[2]
        self._open = ExitStack()
        self._crawl: Crawl | None = None
        self._clone: tuple[CloneReader, Graph] | None = None

    def close(self) -> None:
        """Let go of the clone and the journal."""
        self._open.close()
        if self._crawl:
            self._crawl.journal.close()

    def begin(self, *, ahead: bool = False) -> None:
        """Ask for the first page; `ahead`: without a limit for all that are needed, and fetch the clone.

        Raises:
            InputError, MachineError, Transient: as in `Crawl.begin`, `Clones.fetch_forge`.
        """
        if self._crawl is None:
            self._crawl = Crawl.begin(self.asked, self.api, Home(self.services.clones.store))
        if ahead:
            while self.services.settings.limit is None and not self._read_enough():
                self._crawl.step()
            self._fetched()

    @property
    def crawl(self) -> Crawl:
        """The crawl, once it has begun."""
        if self._crawl is None:
            self.begin()
        assert self._crawl is not None  # noqa: S101 - begin makes it
        return self._crawl

    def changes(self) -> Iterator[Change | InputError | str]:
        """Every merged pull request between `since` and `until`, newest merge first, and lines for people.

        Raises:
            InputError, MachineError, Transient: as in `Crawl.step`, `Talk.fetch`, `Clones.fetch_forge`.
        """
        crawl = self.crawl
        yield from self._about()
        for chunk in self._chunks():
            yield from self._told(chunk, *self._cloned())
        known = crawl.journal.count()
        yield f"github:{crawl.first_name}: {known} merged pull requests known, {crawl.new} of them new"

    def _about(self) -> Iterator[str]:
        """What is peculiar about the repository."""
        said, source = self.crawl.repository, f"github:{self.crawl.first_name}"
        if said["nameWithOwner"].lower() != self.crawl.first_name.lower():
            yield f"{source} is called {said['nameWithOwner']} now; its records keep the first name"
        if said["isFork"] and said["parent"]:
            yield f"{source} is a fork of {said['parent']['nameWithOwner']}: only its own pull requests are mined"
        if said["isArchived"]:
            yield f"{source} is archived"
        if self.crawl.journal.top() is None:
            yield f"{source} has no merged pull requests"

    # -------------------------------------------------------------------------------------------------- chunks

    def _chunks(self) -> Iterator[list[Pull]]:
        """Pull requests that nothing newer can come before, each chunk larger than the one before."""
        below, want = None, FIRST
        while True:
            while self._final(below) < want and not self._read_enough():
                self.crawl.step()
            chunk = list(self._newest(below, MOST))
            if not chunk:
                return
            yield chunk
            below, want = (chunk[-1].merged_at, chunk[-1].number), min(want * 2, MOST)

    def _read_enough(self) -> bool:
        frontier = self.crawl.frontier
        return frontier == BEGINNING or frontier < self._since

    @property
    def _since(self) -> str:
        since = self.services.settings.since
        return since.isoformat() if since else BEGINNING

    @property
    def _until(self) -> str:
        until = self.services.settings.until
        return (until + timedelta(days=1)).isoformat() if until else ""

    def _final(self, below: tuple[str, int] | None) -> int:
        return self.crawl.journal.count(frontier=self.crawl.frontier, since=self._since, until=self._until, below=below)

    def _newest(self, below: tuple[str, int] | None, most: int) -> Iterator[Pull]:
        return self.crawl.journal.newest(
            frontier=self.crawl.frontier, since=self._since, until=self._until, below=below, most=most
        )

    # --------------------------------------------------------------------------------------------------- clone

    def _cloned(self) -> tuple[CloneReader, Graph]:
        """The clone and its commits; read again when something was fetched."""
        if self._fetched() or self._clone is None:
            repository = checked(self._local or self._path)
            self._open.close()
            graph = Graph(repository, self._default.get("name"))
            self._clone = (self._open.enter_context(reading(repository)), graph)
        return self._clone

    def _fetched(self) -> bool:
        """Fetch when the API spoke of something that the clone lacks; whether that was so."""
        journal = self.crawl.journal
        newest = next((pull.merged_at for pull in journal.newest(most=1)), "")
        if self._local or not newest or not self._lacking(newest):
            return False
        about = self.api.repository(self.crawl.name, self._told_before())
        token = self.api.git_token() if about.private else None
        head = self._default.get("name") or about.default_branch
        self.services.clones.fetch_forge(self._path, about.clone_url, head=head, token=token)
        journal.put(fetched=newest, about=asdict(about), server=self.api.server)
        return True

    def _told_before(self) -> About | None:
        """What the same server said of the repository at the last fetch: it need not say it again."""
        about = self.crawl.journal.get("about")
        whole = about and about.keys() == {field.name for field in fields(About)}
        return About(**about) if whole and self.crawl.journal.get("server") == self.api.server else None

    def _lacking(self, newest: str) -> bool:
        """Whether the clone is older than the newest merge, or lacks the tip of the default branch."""
        fetched = self.crawl.journal.get("fetched")
        if fetched is None or newest > fetched or not self._path.exists():
            return True
        tip = (self._default.get("target") or {}).get("oid")
        return self._clone is None and tip is not None and not Repository(self._path).has_commit(tip)

    @property
    def _default(self) -> dict[str, Any]:
        """The default branch as GitHub tells it, {} when the repository is empty."""
        return self.crawl.repository["defaultBranchRef"] or {}

    @property
    def _path(self) -> Path:
        return self.crawl.journal.folder / "repo.git"

    @property
    def _local(self) -> Path | None:
        """The user's own clone."""
        found = (self.services.clones.local_clone(name) for name in self.crawl.names)
        return next((path for path in found if path), None)

    # -------------------------------------------------------------------------------------------------- joined

    def _told(self, chunk: Sequence[Pull], clone: CloneReader, graph: Graph) -> Iterator[Change]:
        """The changes of a chunk; what people said of them is asked for together."""
        repository = clone.repository
        talk = Talk(self.api, self.crawl.journal, self.crawl.name)
        merged = list(Merges(repository, graph).of(chunk))
        there = [one for one in merged if _is_there(one)]
        found = dict(zip(map(id, there), raw_diffs(repository, ((m.merge, m.base) for m in there)), strict=True))
        files = [found.get(id(one), ()) for one in merged]
        said = entries.added(repository, ((m.merge, m.base, f) for m, f in zip(merged, files, strict=True)))
        facts = [self._facts(*one, talk) for one in zip(merged, files, said, strict=True)]
        talk.fetch((i for fact in facts for i in fact.issues), (t for fact in facts for t in fact.threads))
        for fact, touched in zip(facts, files, strict=True):
            answers = self.crawl.journal.answers(fact.keys)
            first = self.crawl.first_name
            request = record(fact, answers, source=f"github:{first}", repo=first, keep=self.services.artifacts.put_text)
            yield clone.change(request, touched, fact.merged.fault)

    def _facts(self, merged: Merged, files: Files, entry: str, talk: Talk) -> Facts:
        """Who is linked to the pull request."""
        pull, repo = merged.pull, self.crawl.first_name
        own = {name.lower() for name in self.crawl.names}
        forge = (IssueLink(issue=issue, origin=LinkOrigin.FORGE) for issue in talk.closing(pull))
        messages = "\n\n".join(commit.message for commit in reversed(merged.commits) if len(commit.parents) < 2)
        said = (
            Said(LinkOrigin.TITLE, pull.body["title"]), Said(LinkOrigin.BODY, pull.body["body"]),
            Said(LinkOrigin.COMMIT, messages), Said(LinkOrigin.CHANGELOG, entry, markdown=False),
        )  # fmt: skip
        named = links(said, repo, pull.number, server=self.crawl.repository["url"])
        fragments = _fragments(files, repo)
        whole = {(link.issue, link.origin): link for link in (*forge, *named, *fragments)}
        plain = (link.model_copy(update={"issue": _canonical(link.issue, own, repo)}) for link in whole.values())
        return Facts(merged, tuple(plain), talk.threads(pull))


def _is_there(merged: Merged) -> bool:
    """Whether the clone holds the merge commit."""
    return merged.merge != EMPTY_TREE and (merged.fault is None or merged.fault[0] is not Reason.NO_MERGE_COMMIT)


def _fragments(files: Files, repo: str) -> Iterator[IssueLink]:
    for file in files:
        number = fragment_number(file.new_path) if file.status == "A" else None
        if number:
            closes = ".bug" in file.new_path or ".fix" in file.new_path
            yield IssueLink(issue=f"{repo}#{number}", origin=LinkOrigin.CHANGELOG, quote=file.new_path, closes=closes)


def _canonical(issue: str, own: set[str], repo: str) -> str:
    """The same issue under the name that records bear, whichever of the repository's names a text has."""
    name, _, number = issue.partition("#")
    return f"{repo}#{number}" if name.lower() in own else issue
