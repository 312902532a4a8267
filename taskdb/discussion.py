"""What people said around a change: issues, comments, review threads, and how a change is linked to them."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from taskdb.base import Part


class AuthorKind(StrEnum):
    """Who wrote something, as far as the source says."""

    USER = "user"
    BOT = "bot"
    ORGANIZATION = "organization"
    MANNEQUIN = "mannequin"
    """Stands in for somebody whose account was never moved along."""
    DELETED = "deleted"
    """The account is gone."""
    UNKNOWN = "unknown"
    """The source does not say: a git history names people, not accounts."""


class LinkOrigin(StrEnum):
    """Where a link from a change to an issue was found."""

    FORGE = "forge"
    """The forge itself lists the issue as closed by the pull request."""
    TITLE = "title"
    BODY = "body"
    COMMIT = "commit"
    CHANGELOG = "changelog"


class IssueLink(Part):
    """That a change speaks of an issue, and where it does. An issue found in two places has two links."""

    issue: str
    """`owner/name#12`."""
    origin: LinkOrigin
    quote: str = ""
    """The words that link it, such as `Fixes #12`; empty when the forge says so itself."""
    closes: bool = True
    """Whether the words claim to close it, or only mention it."""


class Remark(Part):
    """One comment."""

    author: str
    author_kind: AuthorKind
    at: str
    text: str


class LinkedIssue(Part):
    """An issue that a change speaks of."""

    issue: str
    """`owner/name#12`."""
    title: str
    body: str
    author: str
    author_kind: AuthorKind
    created_at: str
    labels: tuple[str, ...] = ()
    is_pull_request: bool = False
    before: tuple[Remark, ...] = ()
    """Comments up to the change's first commit."""
    after: tuple[Remark, ...] = ()
    """Later comments: they may speak of the solution and never reach a statement or hints."""


class ReviewThread(Part):
    """A thread of review comments on one place of a change. Lines are 1-based; null where the forge has none."""

    path: str
    side: Literal["left", "right"]
    line: int | None
    """Last line in the newest version of the change; null when the thread is outdated."""
    start_line: int | None
    original_line: int | None
    """Last line in the version that was commented."""
    original_start_line: int | None
    commit: str | None
    """The commit that was commented."""
    diff_hunk: str
    resolved: bool
    outdated: bool
    remarks: tuple[Remark, ...]


class Discussion(Part):
    """What people said around a change. Kept as an artifact; `PullRequest.discussion` is its hash."""

    issues: tuple[LinkedIssue, ...] = ()
    threads: tuple[ReviewThread, ...] = ()
