"""Resolvers of GraphQL fields: a table per type. A field of GitHub's schema that is missing here is a violation.

A value is the name of an attribute, or a function of the object and the query (`QueryContext`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.github.answers import ApiRequest
from tests.github.git_reader import GitCommit, GitReader
from tests.github.ids import encode_node_id
from tests.github.pages import Connection, paginate, paginate_by_position
from tests.github.rate_limits import RateLimitLedger
from tests.github.world import ServerPullRequest, ServerRepository, ServerReviewThread, World


@dataclass(slots=True)
class QueryContext:
    """State of one query: its token and the world."""

    world: World
    ask: ApiRequest
    books: RateLimitLedger
    readers: Callable[[ServerRepository], GitReader]
    rate_limit: dict[str, Any]
    args: dict[str, Any]
    wants_nodes: bool = False  # the query requests nodes of a connection, not only its total

    def repository(self, full_name: str, *, follow: bool = True) -> ServerRepository | None:
        """Return the repository of that name, if this token has access to it."""
        known = self.world.find(full_name, follow_renames=follow)
        return known if known and self.ask.can_read(known) else None


@dataclass(slots=True)
class RepositoryItem:
    """An object in a repository, with its location."""

    repository: ServerRepository
    thing: Any
    inside: Any = None  # parent of a comment or thread

    @property
    def key(self) -> tuple[str, int]:
        return (self.thing.created_at, self.thing.id)


Field = str | Callable[[Any, QueryContext], Any]
Fields = dict[str, Field]

ORDERS = {"CREATED_AT": "created_at", "UPDATED_AT": "updated_at"}


def list_items(repository: ServerRepository, things: Any, look: QueryContext) -> Connection:
    """Return issues or pull requests: filtered by state and labels, in the requested order."""
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
    page.nodes = [RepositoryItem(repository, thing) for thing in page.nodes]
    return page


def _comments(where: RepositoryItem, look: QueryContext) -> Connection:
    things = [RepositoryItem(where.repository, c, where) for c in where.thing.comments]
    down = (look.args.get("orderBy") or {}).get("direction") == "DESC"
    key = "updated_at" if look.args.get("orderBy") else "created_at"
    return paginate(things, lambda c: (getattr(c.thing, key), c.thing.id), look.args, down=down)


def _labels(where: RepositoryItem, look: QueryContext) -> Connection:
    return paginate_by_position([RepositoryItem(where.repository, label) for label in where.thing.labels], look.args)


def resolve_none(_: Any, look: QueryContext) -> Connection:
    return paginate_by_position([], look.args)


def _closing(where: RepositoryItem, look: QueryContext) -> Connection:
    closing = []
    for name, number in where.thing.closing_issues:
        repository = look.repository(name)
        if repository and number in repository.issues:
            closing.append(RepositoryItem(repository, repository.issues[number]))
    return paginate_by_position(closing, look.args)


def _closers(where: RepositoryItem, look: QueryContext) -> Connection:
    me = (where.repository.full_name, where.thing.number)
    pulls = [p for p in list(where.repository.pulls.values()) if me in p.closing_issues]
    return paginate_by_position([RepositoryItem(where.repository, p) for p in pulls], look.args)


def _commit(where: RepositoryItem, oid: str | None, look: QueryContext) -> RepositoryItem | None:
    """Return a commit by its id; git is only read when further fields are requested."""
    return RepositoryItem(where.repository, GitCommit(look.readers(where.repository), oid)) if oid else None


def _pull_commits(where: RepositoryItem, look: QueryContext) -> Connection:
    pull, reader = where.thing, look.readers(where.repository)
    if not look.wants_nodes:
        return Connection([], pull.commits, [], more_after=False, more_before=False)
    only_head = pull.commits == 1 or look.args.get("last") == 1  # known without reading git
    oids = [pull.head_sha] if only_head else reader.list_commits(pull)[:250]
    page = paginate_by_position(
        [RepositoryItem(where.repository, GitCommit(reader, oid), where) for oid in oids], look.args
    )
    page.total = pull.commits
    return page


def _pull_files(where: RepositoryItem, look: QueryContext) -> Connection:
    pull = where.thing
    if not look.wants_nodes:
        return Connection([], pull.changed_files, [], more_after=False, more_before=False)
    files = look.readers(where.repository).list_files(pull)[:3000]
    page = paginate_by_position(files, look.args)
    page.total = pull.changed_files
    return page


def _rollup(where: RepositoryItem, look: QueryContext) -> RepositoryItem | None:
    """Return the checks of a pull request's last commit."""
    pull = where.thing if isinstance(where.thing, ServerPullRequest) else where.inside and where.inside.thing
    at_head = isinstance(where.thing, ServerPullRequest) or (pull and where.thing.oid == pull.head_sha)
    return RepositoryItem(where.repository, pull) if pull and at_head and pull.checks else None


def _head_repository(where: RepositoryItem, look: QueryContext) -> ServerRepository | None:
    name = where.thing.head_repo
    return (look.repository(name) or None) if name else None


def _url(where: RepositoryItem, look: QueryContext) -> str:
    kind = "pull" if isinstance(where.thing, ServerPullRequest) else "issues"
    return f"{look.ask.root}/{where.repository.full_name}/{kind}/{where.thing.number}"


def _comment_url(where: RepositoryItem, look: QueryContext) -> str:
    return f"{_url(where.inside, look)}#issuecomment-{where.thing.id}"


def _pull_of(where: RepositoryItem) -> RepositoryItem:
    """Return the pull request of a review thread's comment."""
    inside: RepositoryItem = where.inside
    return inside if isinstance(inside.thing, ServerPullRequest) else inside.inside


def _reply_to(where: RepositoryItem, look: QueryContext) -> RepositoryItem | None:
    thread: ServerReviewThread = where.inside.thing
    comment = next((c for c in thread.comments if c.id == where.thing.reply_to), None)
    return RepositoryItem(where.repository, comment, where.inside) if comment else None


def _make_attribute_resolver(name: str) -> Field:
    """Return a resolver of an attribute of the object."""
    return lambda where, look: getattr(where.thing, name)


def make_constant_resolver(value: Any) -> Field:
    return lambda where, look: value


SAID: Fields = {  # issues, pull requests and every kind of comment
    "author": _make_attribute_resolver("author"),
    "authorAssociation": _make_attribute_resolver("association"),
    "createdAt": _make_attribute_resolver("created_at"),
    "updatedAt": _make_attribute_resolver("updated_at"),
    "publishedAt": _make_attribute_resolver("created_at"),
    "databaseId": _make_attribute_resolver("id"),
    "fullDatabaseId": _make_attribute_resolver("id"),
    "body": lambda w, _: w.thing.body or "",
    "bodyText": lambda w, _: w.thing.body or "",
    "repository": lambda w, _: w.repository,
    "reactions": resolve_none,
    "lastEditedAt": make_constant_resolver(None),
    "editor": make_constant_resolver(None),
    "isMinimized": make_constant_resolver(False),
    "minimizedReason": make_constant_resolver(None),
    "includesCreatedEdit": make_constant_resolver(False),
    "createdViaEmail": make_constant_resolver(False),
    "viewerDidAuthor": make_constant_resolver(False),
}
TALKED: Fields = SAID | {  # issues and pull requests
    "number": _make_attribute_resolver("number"),
    "title": _make_attribute_resolver("title"),
    "state": _make_attribute_resolver("state"),
    "closedAt": _make_attribute_resolver("closed_at"),
    "closed": lambda w, _: w.thing.closed_at is not None,
    "locked": _make_attribute_resolver("locked"),
    "labels": _labels,
    "comments": _comments,
    "url": _url,
    "permalink": _url,
    "assignees": resolve_none,
    "milestone": make_constant_resolver(None),
    "activeLockReason": lambda w, _: "RESOLVED" if w.thing.locked else None,
    "resourcePath": lambda w, look: _url(w, look).removeprefix(look.ask.root),
}

PULL_REQUEST: Fields = TALKED | {
    "id": lambda w, _: encode_node_id("PR", w.repository.id, w.thing.number),
    "merged": lambda w, _: w.thing.merged_at is not None,
    "mergedAt": _make_attribute_resolver("merged_at"),
    "mergedBy": _make_attribute_resolver("merged_by"),
    "mergeCommit": lambda w, look: _commit(w, w.thing.merge_commit, look),
    "isDraft": _make_attribute_resolver("draft"),
    "potentialMergeCommit": lambda w, look: _commit(w, w.thing.test_merge, look),
    "baseRefName": _make_attribute_resolver("base_ref"),
    "baseRefOid": _make_attribute_resolver("base_sha"),
    "headRefName": _make_attribute_resolver("head_ref"),
    "headRefOid": _make_attribute_resolver("head_sha"),
    "baseRepository": lambda w, _: w.repository,
    "headRepository": _head_repository,
    "baseRef": lambda w, look: look.readers(w.repository).ref(f"refs/heads/{w.thing.base_ref}"),
    "headRef": lambda w, look: (
        None if w.thing.closed_at else look.readers(w.repository).ref(f"refs/heads/{w.thing.head_ref}")
    ),
    "headRepositoryOwner": lambda w, _: w.thing.head_owner,
    "isCrossRepository": lambda w, _: w.thing.head_repo != w.repository.full_name,
    "additions": _make_attribute_resolver("additions"),
    "deletions": _make_attribute_resolver("deletions"),
    "changedFiles": _make_attribute_resolver("changed_files"),
    "files": _pull_files,
    "commits": _pull_commits,
    "closingIssuesReferences": _closing,
    "statusCheckRollup": _rollup,
    "reviewThreads": lambda w, look: paginate_by_position(
        [RepositoryItem(w.repository, t, w) for t in w.thing.threads], look.args
    ),
    "reviews": lambda w, look: paginate_by_position(
        [RepositoryItem(w.repository, r, w) for r in w.thing.reviews], look.args
    ),
    "reviewDecision": lambda w, _: "APPROVED" if any(r.state == "APPROVED" for r in w.thing.reviews) else None,
    "maintainerCanModify": make_constant_resolver(False),
    "autoMergeRequest": make_constant_resolver(None),
    "reviewRequests": resolve_none,
    "mergeable": lambda w, _: "UNKNOWN" if w.thing.closed_at else "MERGEABLE",
    "totalCommentsCount": lambda w, _: len(w.thing.comments) + sum(len(t.comments) for t in w.thing.threads),
}

ISSUE: Fields = TALKED | {
    "id": lambda w, _: encode_node_id("I", w.repository.id, w.thing.number),
    "stateReason": _make_attribute_resolver("state_reason"),
    "closedByPullRequestsReferences": _closers,
}

ISSUE_COMMENT: Fields = SAID | {
    "id": lambda w, _: encode_node_id("IC", w.repository.id, w.thing.id),
    "url": _comment_url,
    "issue": lambda w, _: w.inside,
    "pullRequest": lambda w, _: w.inside if isinstance(w.inside.thing, ServerPullRequest) else None,
}

THREAD: Fields = {
    "id": lambda w, _: encode_node_id("PRRT", w.repository.id, w.inside.thing.number, w.thing.id),
    "path": _make_attribute_resolver("path"),
    "line": _make_attribute_resolver("line"),
    "startLine": _make_attribute_resolver("start_line"),
    "originalLine": lambda w, _: w.thing.original_line or w.thing.line,
    "originalStartLine": _make_attribute_resolver("start_line"),
    "diffSide": _make_attribute_resolver("side"),
    "startDiffSide": lambda w, _: w.thing.side if w.thing.start_line else None,
    "isResolved": _make_attribute_resolver("resolved"),
    "isOutdated": _make_attribute_resolver("is_outdated"),
    "isCollapsed": _make_attribute_resolver("resolved"),
    "subjectType": _make_attribute_resolver("subject"),
    "comments": _comments,
    "pullRequest": lambda w, _: w.inside,
    "repository": lambda w, _: w.repository,
    "resolvedBy": make_constant_resolver(None),
}

REVIEW_COMMENT: Fields = SAID | {
    "id": lambda w, _: encode_node_id("PRRC", w.repository.id, w.thing.id),
    "diffHunk": _make_attribute_resolver("diff_hunk"),
    "path": lambda w, _: w.inside.thing.path,
    "line": lambda w, _: w.inside.thing.line,
    "startLine": lambda w, _: w.inside.thing.start_line,
    "outdated": lambda w, _: w.inside.thing.is_outdated,
    "originalLine": lambda w, _: w.inside.thing.original_line or w.inside.thing.line,
    "originalStartLine": lambda w, _: w.inside.thing.start_line,
    "subjectType": lambda w, _: w.inside.thing.subject,
    "pullRequest": lambda w, _: _pull_of(w),
    "replyTo": _reply_to,
    "draftedAt": _make_attribute_resolver("created_at"),
    "state": make_constant_resolver("SUBMITTED"),
    "commit": lambda w, look: _commit(w, w.thing.commit, look),
    "originalCommit": lambda w, look: _commit(w, w.thing.commit, look),
    "pullRequestReview": make_constant_resolver(None),
    "position": lambda w, _: w.inside.thing.line,
    "originalPosition": lambda w, _: w.inside.thing.original_line or 1,
    "url": lambda w, look: f"{_url(_pull_of(w), look)}#discussion_r{w.thing.id}",
}

REVIEW: Fields = {
    "id": lambda w, _: encode_node_id("PRR", w.repository.id, w.thing.id),
    "author": _make_attribute_resolver("author"),
    "state": _make_attribute_resolver("state"),
    "body": _make_attribute_resolver("body"),
    "submittedAt": _make_attribute_resolver("submitted_at"),
    "createdAt": _make_attribute_resolver("submitted_at"),
    "databaseId": _make_attribute_resolver("id"),
    "fullDatabaseId": _make_attribute_resolver("id"),
    "pullRequest": lambda w, _: w.inside,
    "repository": lambda w, _: w.repository,
    "url": lambda w, look: f"{_url(w.inside, look)}#pullrequestreview-{w.thing.id}",
}

LABEL: Fields = {
    "id": lambda w, _: encode_node_id("LA", w.repository.id, w.thing.id),
    "name": _make_attribute_resolver("name"),
    "color": _make_attribute_resolver("color"),
    "description": _make_attribute_resolver("description"),
    "isDefault": make_constant_resolver(False),
    "repository": lambda w, _: w.repository,
    "url": lambda w, look: f"{look.ask.root}/{w.repository.full_name}/labels/{w.thing.name}".replace(" ", "%20"),
}

ROLLUP: Fields = {
    "id": lambda w, _: encode_node_id("SCR", w.repository.id, w.thing.number),
    "state": _make_attribute_resolver("checks"),
    "contexts": resolve_none,
    "commit": lambda w, look: _commit(w, w.thing.head_sha, look),
}

ACTOR: Fields = {
    "login": "login",
    "databaseId": "id",
    "name": "name",
    "url": lambda a, look: f"{look.ask.root}/{a.login}",
    "id": lambda a, _: encode_node_id({"Bot": "BOT", "Organization": "O", "Mannequin": "M"}.get(a.kind, "U"), a.id),
    "avatarUrl": lambda a, look: f"{look.ask.root}/avatars/{a.id}",
    "resourcePath": lambda a, _: f"/{a.login}",
    "email": lambda a, _: None if a.kind == "Mannequin" else "",
}
