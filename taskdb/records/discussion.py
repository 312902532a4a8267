"""Discussion of a change: issues, comments, review threads, and how the change is linked to them."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from taskdb.records.base import Part


class AuthorKind(StrEnum):
    """Type of an author's account, where the source has it."""

    USER = "user"
    BOT = "bot"
    ORGANIZATION = "organization"
    MANNEQUIN = "mannequin"
    """Placeholder for an author whose account was not migrated."""
    DELETED = "deleted"
    """The account is gone."""
    UNKNOWN = "unknown"
    """The source has no accounts: a git history names people only."""


class LinkOrigin(StrEnum):
    """Where a link from a change to an issue was found."""

    FORGE = "forge"
    """The forge itself lists the issue as closed by the pull request."""
    TITLE = "title"
    BODY = "body"
    COMMIT = "commit"
    CHANGELOG = "changelog"


class IssueLink(Part):
    """A mention of an issue in a change. An issue found in two places has two links."""

    issue: str
    """`owner/name#12`."""
    origin: LinkOrigin
    quote: str = ""
    """The words that link it, such as `Fixes #12`; empty for links of the forge."""
    closes: bool = True
    """Whether the words claim to close it; otherwise they only mention it."""


class Comment(Part):
    """A comment."""

    author: str
    author_kind: AuthorKind
    at: str
    text: str


class LinkedIssue(Part):
    """An issue that a change mentions."""

    issue: str
    """`owner/name#12`."""
    title: str
    body: str
    author: str
    author_kind: AuthorKind
    created_at: str
    labels: tuple[str, ...] = ()
    is_pull_request: bool = False
    before: tuple[Comment, ...] = ()
    """Comments up to the change's first commit."""
    after: tuple[Comment, ...] = ()
    """Later comments: they may reveal the solution and are never part of a statement or of hints."""


class ReviewThread(Part):
    """A thread of review comments on a place of a change. Lines are 1-based; null where the forge has none."""

    path: str
    side: Literal["left", "right"]
    line: int | None
    """Last line in the newest version of the change; null when the thread is outdated."""
    start_line: int | None
    original_line: int | None
    """Last line in the version that was commented on."""
    original_start_line: int | None
    commit: str | None
    """The commit that was commented on."""
    diff_hunk: str
    resolved: bool
    outdated: bool
    remarks: tuple[Comment, ...]


class Discussion(Part):
    """Issues and review threads of a change. Stored as an artifact; `PullRequest.discussion` is its hash."""

    issues: tuple[LinkedIssue, ...] = ()
    threads: tuple[ReviewThread, ...] = ()
