"""Which GraphQL field says what: a table per type. A field that is in GitHub's schema and not here is unanswered.

A value is the name of an attribute, or a function of the thing and of what was asked (`Look`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.github.answers import Ask
from tests.github.budget import Books
from tests.github.git_reader import Commit, GitReader
from tests.github.ids import node_id
from tests.github.pages import Connection, by_position, paginate
from tests.github.world import PullRequest, Repository, Thread, World


@dataclass(slots=True)
class Look:
    """The state of one query: who asks, and what there is."""

    world: World
    ask: Ask
    books: Books
    readers: Callable[[Repository], GitReader]
    rate_limit: dict[str, Any]
    args: dict[str, Any]
    wants_nodes: bool = False  # of a connection, more than how many there are

    def repository(self, full_name: str, *, follow: bool = True) -> Repository | None:
        """The repository of that name, if this token may see it."""
        found = self.world.find(full_name, follow_renames=follow)
        return found if found and self.ask.sees(found) else None


@dataclass(slots=True)
class In:
    """Something said in a repository: the thing, and where."""

    repository: Repository
    thing: Any
    inside: Any = None  # what a comment or thread belongs to

    @property
    def key(self) -> tuple[str, int]:
        return (self.thing.created_at, self.thing.id)


Field = str | Callable[[Any, Look], Any]
Fields = dict[str, Field]

ORDERS = {"CREATED_AT": "created_at", "UPDATED_AT": "updated_at"}


def listed(repository: Repository, things: Any, look: Look) -> Connection:
    """Issues or pull requests: filtered by state and labels, in the order asked for."""
    args = look.args
    if args.get("states"):
        things = [t for t in things if t.state in args["states"]]
    if args.get("labels"):
        things = [t for t in things if {label.name for label in t.labels} & set(args["labels"])]
    for name, attribute in (("headRefName", "head_ref"), ("baseRefName", "base_ref")):
        if args.get(name):
            things = [t for t in things if getattr(t, attribute) == args[name]]
    since = (args.get("filterBy") or {}).get("since")
    if since:
        things = [t for t in things if t.updated_at >= since]
    order = args.get("orderBy") or {"field": "CREATED_AT", "direction": "ASC"}
    down = order["direction"] == "DESC"
    if order["field"] == "COMMENTS":
        page = paginate(things, lambda t: (len(t.comments), t.id), args, down=down)
    else:
        attribute = ORDERS[order["field"]]
        page = paginate(things, lambda t: (getattr(t, attribute), t.id), args, down=down)
    page.nodes = [In(repository, thing) for thing in page.nodes]
    return page


def _comments(where: In, look: Look) -> Connection:
    things = [In(where.repository, c, where) for c in where.thing.comments]
    down = (look.args.get("orderBy") or {}).get("direction") == "DESC"
    key = "updated_at" if look.args.get("orderBy") else "created_at"
    return paginate(things, lambda c: (getattr(c.thing, key), c.thing.id), look.args, down=down)


def _labels(where: In, look: Look) -> Connection:
    return by_position([In(where.repository, label) for label in where.thing.labels], look.args)


def nothing(_: Any, look: Look) -> Connection:
    return by_position([], look.args)


def _closing(where: In, look: Look) -> Connection:
    found = []
    for name, number in where.thing.closing_issues:
        repository = look.repository(name)
        if repository and number in repository.issues:
            found.append(In(repository, repository.issues[number]))
    return by_position(found, look.args)


def _closers(where: In, look: Look) -> Connection:
    me = (where.repository.full_name, where.thing.number)
    pulls = [p for p in list(where.repository.pulls.values()) if me in p.closing_issues]
    return by_position([In(where.repository, p) for p in pulls], look.args)


def _commit(where: In, oid: str | None, look: Look) -> In | None:
    """A commit by its id; only that is read from git until more is asked for."""
    return In(where.repository, Commit(look.readers(where.repository), oid)) if oid else None


def _pull_commits(where: In, look: Look) -> Connection:
    pull, reader = where.thing, look.readers(where.repository)
    if not look.wants_nodes:
        return Connection([], pull.commits, [], more_after=False, more_before=False)
    only_head = pull.commits == 1 or look.args.get("last") == 1  # known without asking git
    oids = [pull.head_sha] if only_head else reader.commits_of(pull)[:250]
    page = by_position([In(where.repository, Commit(reader, oid), where) for oid in oids], look.args)
    page.total = pull.commits
    return page


def _pull_files(where: In, look: Look) -> Connection:
    pull = where.thing
    if not look.wants_nodes:
        return Connection([], pull.changed_files, [], more_after=False, more_before=False)
    files = look.readers(where.repository).files_of(pull)[:3000]
    page = by_position(files, look.args)
    page.total = pull.changed_files
    return page


def _rollup(where: In, look: Look) -> In | None:
    """The checks of a pull request's last commit."""
    pull = where.thing if isinstance(where.thing, PullRequest) else where.inside and where.inside.thing
    at_head = isinstance(where.thing, PullRequest) or (pull and where.thing.oid == pull.head_sha)
    return In(where.repository, pull) if pull and at_head and pull.checks else None


def _head_repository(where: In, look: Look) -> Repository | None:
    name = where.thing.head_repo
    return (look.repository(name) or None) if name else None


def _url(where: In, look: Look) -> str:
    kind = "pull" if isinstance(where.thing, PullRequest) else "issues"
    return f"{look.ask.root}/{where.repository.full_name}/{kind}/{where.thing.number}"


def _comment_url(where: In, look: Look) -> str:
    return f"{_url(where.inside, look)}#issuecomment-{where.thing.id}"


def _pull_of(where: In) -> In:
    """The pull request around a review thread's comment."""
    inside: In = where.inside
    return inside if isinstance(inside.thing, PullRequest) else inside.inside


def _reply_to(where: In, look: Look) -> In | None:
    thread: Thread = where.inside.thing
    found = next((c for c in thread.comments if c.id == where.thing.reply_to), None)
    return In(where.repository, found, where.inside) if found else None


def _of(name: str) -> Field:
    """An attribute of the thing itself."""
    return lambda where, look: getattr(where.thing, name)


def constant(value: Any) -> Field:
    return lambda where, look: value


SAID: Fields = {  # issues, pull requests and every kind of comment
    "author": _of("author"), "authorAssociation": _of("association"), "createdAt": _of("created_at"),
    "updatedAt": _of("updated_at"), "publishedAt": _of("created_at"), "databaseId": _of("id"),
    "fullDatabaseId": _of("id"), "body": lambda w, _: w.thing.body or "", "bodyText": lambda w, _: w.thing.body or "",
    "repository": lambda w, _: w.repository, "reactions": nothing, "lastEditedAt": constant(None),
    "editor": constant(None), "isMinimized": constant(False), "minimizedReason": constant(None),
    "includesCreatedEdit": constant(False), "createdViaEmail": constant(False), "viewerDidAuthor": constant(False),
}  # fmt: skip
TALKED: Fields = SAID | {  # issues and pull requests
    "number": _of("number"), "title": _of("title"), "state": _of("state"), "closedAt": _of("closed_at"),
    "closed": lambda w, _: w.thing.closed_at is not None, "locked": _of("locked"), "labels": _labels,
    "comments": _comments, "url": _url, "permalink": _url, "assignees": nothing, "milestone": constant(None),
    "activeLockReason": lambda w, _: "RESOLVED" if w.thing.locked else None,
    "resourcePath": lambda w, look: _url(w, look).removeprefix(look.ask.root),
}  # fmt: skip

PULL_REQUEST: Fields = TALKED | {
    "id": lambda w, _: node_id("PR", w.repository.id, w.thing.number),
    "merged": lambda w, _: w.thing.merged_at is not None, "mergedAt": _of("merged_at"), "mergedBy": _of("merged_by"),
    "mergeCommit": lambda w, look: _commit(w, w.thing.merge_commit, look), "isDraft": _of("draft"),
    "potentialMergeCommit": lambda w, look: _commit(w, w.thing.test_merge, look),
    "baseRefName": _of("base_ref"), "baseRefOid": _of("base_sha"), "headRefName": _of("head_ref"),
    "headRefOid": _of("head_sha"), "baseRepository": lambda w, _: w.repository, "headRepository": _head_repository,
    "baseRef": lambda w, look: look.readers(w.repository).ref(f"refs/heads/{w.thing.base_ref}"),
    "headRef": lambda w, look: None if w.thing.closed_at else look.readers(w.repository).ref(
        f"refs/heads/{w.thing.head_ref}"),
    "headRepositoryOwner": lambda w, _: w.thing.head_owner,
    "isCrossRepository": lambda w, _: w.thing.head_repo != w.repository.full_name,
    "additions": _of("additions"), "deletions": _of("deletions"), "changedFiles": _of("changed_files"),
    "files": _pull_files, "commits": _pull_commits, "closingIssuesReferences": _closing, "statusCheckRollup": _rollup,
    "reviewThreads": lambda w, look: by_position([In(w.repository, t, w) for t in w.thing.threads], look.args),
    "reviews": lambda w, look: by_position([In(w.repository, r, w) for r in w.thing.reviews], look.args),
    "reviewDecision": lambda w, _: "APPROVED" if any(r.state == "APPROVED" for r in w.thing.reviews) else None,
    "maintainerCanModify": constant(False), "autoMergeRequest": constant(None), "reviewRequests": nothing,
    "mergeable": lambda w, _: "UNKNOWN" if w.thing.closed_at else "MERGEABLE",
    "totalCommentsCount": lambda w, _: len(w.thing.comments) + sum(len(t.comments) for t in w.thing.threads),
}  # fmt: skip

ISSUE: Fields = TALKED | {
    "id": lambda w, _: node_id("I", w.repository.id, w.thing.number), "stateReason": _of("state_reason"),
    "closedByPullRequestsReferences": _closers,
}  # fmt: skip

ISSUE_COMMENT: Fields = SAID | {
    "id": lambda w, _: node_id("IC", w.repository.id, w.thing.id), "url": _comment_url,
    "issue": lambda w, _: w.inside,
    "pullRequest": lambda w, _: w.inside if isinstance(w.inside.thing, PullRequest) else None,
}  # fmt: skip

THREAD: Fields = {
    "id": lambda w, _: node_id("PRRT", w.repository.id, w.inside.thing.number, w.thing.id),
    "path": _of("path"), "line": _of("line"),
    "startLine": _of("start_line"), "originalLine": lambda w, _: w.thing.original_line or w.thing.line,
    "originalStartLine": _of("start_line"), "diffSide": _of("side"),
    "startDiffSide": lambda w, _: w.thing.side if w.thing.start_line else None, "isResolved": _of("resolved"),
    "isOutdated": _of("outdated"), "isCollapsed": _of("resolved"), "subjectType": _of("subject"),
    "comments": _comments, "pullRequest": lambda w, _: w.inside, "repository": lambda w, _: w.repository,
    "resolvedBy": constant(None),
}  # fmt: skip

REVIEW_COMMENT: Fields = SAID | {
    "id": lambda w, _: node_id("PRRC", w.repository.id, w.thing.id), "diffHunk": _of("diff_hunk"),
    "path": lambda w, _: w.inside.thing.path, "line": lambda w, _: w.inside.thing.line,
    "startLine": lambda w, _: w.inside.thing.start_line, "outdated": lambda w, _: w.inside.thing.outdated,
    "originalLine": lambda w, _: w.inside.thing.original_line or w.inside.thing.line,
    "originalStartLine": lambda w, _: w.inside.thing.start_line, "subjectType": lambda w, _: w.inside.thing.subject,
    "pullRequest": lambda w, _: _pull_of(w), "replyTo": _reply_to, "draftedAt": _of("created_at"),
    "state": constant("SUBMITTED"), "commit": lambda w, look: _commit(w, w.thing.commit, look),
    "originalCommit": lambda w, look: _commit(w, w.thing.commit, look), "pullRequestReview": constant(None),
    "position": lambda w, _: w.inside.thing.line, "originalPosition": lambda w, _: w.inside.thing.original_line or 1,
    "url": lambda w, look: f"{_url(_pull_of(w), look)}#discussion_r{w.thing.id}",
}  # fmt: skip

REVIEW: Fields = {
    "id": lambda w, _: node_id("PRR", w.repository.id, w.thing.id), "author": _of("author"), "state": _of("state"),
    "body": _of("body"), "submittedAt": _of("submitted_at"), "createdAt": _of("submitted_at"),
    "databaseId": _of("id"), "fullDatabaseId": _of("id"), "pullRequest": lambda w, _: w.inside,
    "repository": lambda w, _: w.repository,
    "url": lambda w, look: f"{_url(w.inside, look)}#pullrequestreview-{w.thing.id}",
}  # fmt: skip

LABEL: Fields = {
    "id": lambda w, _: node_id("LA", w.repository.id, w.thing.id), "name": _of("name"), "color": _of("color"),
    "description": _of("description"), "isDefault": constant(False), "repository": lambda w, _: w.repository,
    "url": lambda w, look: f"{look.ask.root}/{w.repository.full_name}/labels/{w.thing.name}".replace(" ", "%20"),
}  # fmt: skip

ROLLUP: Fields = {
    "id": lambda w, _: node_id("SCR", w.repository.id, w.thing.number), "state": _of("checks"), "contexts": nothing,
    "commit": lambda w, look: _commit(w, w.thing.head_sha, look),
}  # fmt: skip

ACTOR: Fields = {
    "login": "login", "databaseId": "id", "name": "name", "url": lambda a, look: f"{look.ask.root}/{a.login}",
    "id": lambda a, _: node_id({"Bot": "BOT", "Organization": "O", "Mannequin": "M"}.get(a.kind, "U"), a.id),
    "avatarUrl": lambda a, look: f"{look.ask.root}/avatars/{a.id}", "resourcePath": lambda a, _: f"/{a.login}",
    "email": lambda a, _: None if a.kind == "Mannequin" else "",
}  # fmt: skip
