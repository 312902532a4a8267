"""Content of an emulated GitHub: plain data about accounts, repositories, issues and pull requests.

The code itself is in real bare clones (`ServerRepository.git_dir`). Times are ISO 8601 in UTC with a "Z", as in both
APIs; they sort as text. A test may change anything at any time, even while the server answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.github.ids import decode_node_id


@dataclass(slots=True)
class Actor:
    """An account. `login` is GraphQL's; a bot's has the suffix "[bot]" only in REST."""

    login: str
    id: int
    kind: str = "User"  # User, Bot, Mannequin, Organization
    name: str | None = None

    @property
    def rest_login(self) -> str:
        return f"{self.login}[bot]" if self.kind == "Bot" else self.login


@dataclass(slots=True)
class Label:
    name: str
    id: int
    color: str = "ededed"
    description: str = ""


@dataclass(slots=True)
class ServerComment:
    """A comment of an issue's or pull request's conversation."""

    id: int
    author: Actor | None
    body: str
    created_at: str
    updated_at: str = ""
    association: str = "NONE"

    def __post_init__(self) -> None:
        self.updated_at = self.updated_at or self.created_at


@dataclass(slots=True)
class ReviewComment(ServerComment):
    """A comment on a line of the diff."""

    diff_hunk: str = ""
    reply_to: int | None = None
    commit: str = ""  # the head when it was written


@dataclass(slots=True)
class ServerReviewThread:
    """A review thread. `line` is None once the thread is outdated; `original_line` stays."""

    id: int
    path: str
    line: int | None
    comments: list[ReviewComment]
    start_line: int | None = None
    side: str = "RIGHT"
    original_line: int | None = None
    resolved: bool = False
    subject: str = "LINE"  # or FILE

    @property
    def is_outdated(self) -> bool:
        return self.line is None and self.subject == "LINE"


@dataclass(slots=True)
class PullRequestReview:
    id: int
    author: Actor | None
    state: str  # APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED
    body: str
    submitted_at: str


@dataclass(slots=True)
class DiscussionItem:
    """Fields that issues and pull requests have in common."""

    number: int
    id: int
    title: str
    body: str | None
    author: Actor | None
    created_at: str
    updated_at: str


@dataclass(slots=True)
class Issue(DiscussionItem):
    closed_at: str | None = None
    state_reason: str | None = None  # COMPLETED, NOT_PLANNED
    labels: list[Label] = field(default_factory=list)
    comments: list[ServerComment] = field(default_factory=list)
    association: str = "NONE"
    locked: bool = False

    @property
    def state(self) -> str:
        return "CLOSED" if self.closed_at else "OPEN"


@dataclass(slots=True)
class ServerPullRequest(DiscussionItem):
    """A pull request. `base_sha` is the base branch's tip when it was opened, as in the API: no parent of the merge."""

    base_ref: str
    base_sha: str
    head_ref: str
    head_sha: str
    head_repo: str | None  # full name; None: the fork was deleted
    head_owner: Actor | None = None
    closed_at: str | None = None
    merged_at: str | None = None
    merged_by: Actor | None = None
    merge_commit: str | None = None
    test_merge: str | None = None  # merge_commit_sha in REST for a pull request that was never merged
    labels: list[Label] = field(default_factory=list)
    comments: list[ServerComment] = field(default_factory=list)
    threads: list[ServerReviewThread] = field(default_factory=list)
    reviews: list[PullRequestReview] = field(default_factory=list)
    closing_issues: list[tuple[str, int]] = field(default_factory=list)  # (repository's full name, number)
    checks: str | None = None  # SUCCESS, FAILURE, ERROR, PENDING, EXPECTED
    changed_files: int = 1
    additions: int = 1
    deletions: int = 0
    commits: int = 1
    association: str = "NONE"
    draft: bool = False
    locked: bool = False

    @property
    def state(self) -> str:
        return "MERGED" if self.merged_at else "CLOSED" if self.closed_at else "OPEN"


@dataclass(slots=True)
class ServerRepository:
    """A repository with its discussions; issues and pull requests share one sequence of numbers."""

    id: int
    owner: Actor
    name: str
    git_dir: Path | None
    created_at: str
    pushed_at: str
    updated_at: str
    old_names: list[str] = field(default_factory=list)  # full names it had before
    description: str | None = None
    default_branch: str = "main"
    language: str | None = "Python"
    languages: dict[str, int] = field(default_factory=dict)  # bytes of each
    license: tuple[str, str, str | None] | None = None  # key, name, SPDX id (None or NOASSERTION for "other")
    topics: list[str] = field(default_factory=list)
    stars: int = 0
    forks: int = 0
    archived: bool = False
    private: bool = False
    blocked: bool = False  # answered with 451
    fork_of: str | None = None
    issues_enabled: bool = True
    labels: list[Label] = field(default_factory=list)
    issues: dict[int, Issue] = field(default_factory=dict)
    pulls: dict[int, ServerPullRequest] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"


class World:
    """All content of this GitHub. Names are case-insensitive."""

    def __init__(self) -> None:
        self.actors: dict[str, Actor] = {}
        self.repositories: dict[int, ServerRepository] = {}
        self._ids = 1000

    def new_id(self) -> int:
        self._ids += 1
        return self._ids

    def actor(self, login: str, kind: str = "User", name: str | None = None) -> Actor:
        """Return the account of that login; create it if it does not exist."""
        if login not in self.actors:
            self.actors[login] = Actor(login, self.new_id(), kind, name)
        return self.actors[login]

    def add(self, repository: ServerRepository) -> ServerRepository:
        self.repositories[repository.id] = repository
        return repository

    def find(self, full_name: str, *, follow_renames: bool = True) -> ServerRepository | None:
        """Return the repository of that present or former name."""
        wanted = full_name.lower()
        everything = list(self.repositories.values())
        for repository in everything:
            if repository.full_name.lower() == wanted:
                return repository
        old = (r for r in everything if wanted in (name.lower() for name in r.old_names))
        return next(old, None) if follow_renames else None

    def rename(self, full_name: str, new_name: str) -> None:
        """Rename a repository to another "owner/name"; the old name refers to it from then on."""
        repository = self.find(full_name)
        assert repository, full_name
        owner, name = new_name.split("/")
        repository.old_names.append(repository.full_name)
        repository.owner, repository.name = self.actor(owner), name

    def remove(self, full_name: str) -> None:
        """Remove the repository, as if deleted."""
        repository = self.find(full_name)
        assert repository, full_name
        del self.repositories[repository.id]

    def find_node(self, text: str) -> tuple[ServerRepository, Issue | ServerPullRequest | None] | None:
        """Return the repository, issue or pull request of a global node id; for a review thread see `find_thread`."""
        read = decode_node_id(text)
        if not read or not read[1] or not read[1][0].isdigit():
            return None
        kind, (repository_id, *rest) = read
        repository = self.repositories.get(int(repository_id))
        if not repository or kind == "R":
            return (repository, None) if repository else None
        held: dict[str, dict[int, Issue] | dict[int, ServerPullRequest]] = {
            "I": repository.issues,
            "PR": repository.pulls,
        }
        node = held.get(kind, {}).get(int(rest[0])) if rest and rest[0].isdigit() else None
        return (repository, node) if node else None

    def find_thread(self, text: str) -> tuple[ServerRepository, ServerPullRequest, ServerReviewThread] | None:
        """Return the review thread of a global node id, with its location."""
        kind, parts = decode_node_id(text) or ("", ())
        if kind != "PRRT" or len(parts) != 3 or not all(part.isdigit() for part in parts):
            return None
        repository = self.repositories.get(int(parts[0]))
        pull = repository.pulls.get(int(parts[1])) if repository else None
        thread = next((thread for thread in pull.threads if thread.id == int(parts[2])), None) if pull else None
        return (repository, pull, thread) if repository and pull and thread else None

    def __iter__(self) -> Iterator[ServerRepository]:
        return iter(list(self.repositories.values()))
