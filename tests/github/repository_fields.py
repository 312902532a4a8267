"""GraphQL fields of repositories, commits, branches and of the query itself."""

from __future__ import annotations

import datetime as dt
from typing import Any

from tests.github.fields import (
    ACTOR,
    ISSUE,
    ISSUE_COMMENT,
    LABEL,
    PULL_REQUEST,
    REVIEW,
    REVIEW_COMMENT,
    ROLLUP,
    THREAD,
    Fields,
    QueryContext,
    RepositoryItem,
    list_items,
    make_constant_resolver,
    resolve_none,
)
from tests.github.git_reader import ChangedFile, GitCommit, GitFile, GitFolder, GitRef
from tests.github.ids import encode_node_id
from tests.github.pages import Connection, GraphQLRequestError, paginate_by_position
from tests.github.world import (
    Actor,
    Issue,
    Label,
    PullRequestReview,
    ReviewComment,
    ServerComment,
    ServerPullRequest,
    ServerRepository,
    ServerReviewThread,
)


def _numbered(
    repository: ServerRepository, look: QueryContext, *, issues: bool, pulls: bool, kind: str
) -> RepositoryItem:
    number = look.args["number"]
    issue = (issues and repository.issues.get(number)) or (pulls and repository.pulls.get(number))
    if not issue:
        raise GraphQLRequestError("NOT_FOUND", f"Could not resolve to {kind} with the number of {number}.")
    return RepositoryItem(repository, issue)


def _languages(repository: ServerRepository, look: QueryContext) -> Connection:
    largest = sorted(repository.languages.items(), key=lambda pair: -pair[1])
    return paginate_by_position(largest, look.args)


def _object(repository: ServerRepository, look: QueryContext) -> RepositoryItem | None:
    """Return a commit by its id or branch, or a folder or file as in "HEAD:tests"; None for anything else."""
    wanted = look.args.get("oid") or look.args.get("expression")
    reader = look.readers(repository)
    if not wanted or not reader.git_dir:
        return None
    revision, colon, path = wanted.partition(":")
    if colon:
        entry = reader.read_path(revision, path)
        return RepositoryItem(repository, entry) if entry else None
    oid = reader.text("for-each-ref", "--format=%(objectname)", f"refs/heads/{wanted}") or wanted
    return RepositoryItem(repository, GitCommit(reader, oid)) if len(oid) == 40 else None


def _target(ref: GitRef, look: QueryContext) -> RepositoryItem | None:
    repository = next((r for r in look.world if r.git_dir == ref.reader.git_dir), None)
    return RepositoryItem(repository, GitCommit(ref.reader, ref.oid)) if repository else None


def _parent(repository: ServerRepository, look: QueryContext) -> ServerRepository | None:
    return look.repository(repository.fork_of) if repository.fork_of else None


REPOSITORY: Fields = {
    "id": lambda r, _: encode_node_id("R", r.id),
    "databaseId": "id",
    "name": "name",
    "nameWithOwner": "full_name",
    "owner": "owner",
    "description": "description",
    "createdAt": "created_at",
    "pushedAt": "pushed_at",
    "updatedAt": "updated_at",
    "isArchived": "archived",
    "isFork": lambda r, _: r.fork_of is not None,
    "archivedAt": lambda r, _: r.updated_at if r.archived else None,
    "isPrivate": "private",
    "isDisabled": make_constant_resolver(False),
    "isEmpty": lambda r, _: not r.git_dir,
    "isTemplate": make_constant_resolver(False),
    "isMirror": make_constant_resolver(False),
    "isLocked": make_constant_resolver(False),
    "visibility": lambda r, _: "PRIVATE" if r.private else "PUBLIC",
    "parent": _parent,
    "stargazerCount": "stars",
    "forkCount": "forks",
    "hasIssuesEnabled": "issues_enabled",
    "isInOrganization": lambda r, _: r.owner.kind == "Organization",
    "homepageUrl": make_constant_resolver(None),
    "diskUsage": lambda r, _: 100 + sum(r.languages.values()) // 1024,
    "mirrorUrl": make_constant_resolver(None),
    "primaryLanguage": lambda r, _: (r.language, 0) if r.language else None,
    "languages": _languages,
    "licenseInfo": "license",
    "url": lambda r, look: f"{look.ask.root}/{r.full_name}",
    "sshUrl": lambda r, _: f"git@localhost:{r.full_name}.git",
    "resourcePath": lambda r, _: f"/{r.full_name}",
    "defaultBranchRef": lambda r, look: look.readers(r).ref(f"refs/heads/{r.default_branch}"),
    "ref": lambda r, look: look.readers(r).ref(look.args["qualifiedName"]),
    "object": _object,
    "pullRequests": lambda r, look: list_items(r, list(r.pulls.values()), look),
    "issues": lambda r, look: list_items(r, list(r.issues.values()), look),
    "pullRequest": lambda r, look: _numbered(r, look, issues=False, pulls=True, kind="a PullRequest"),
    "issue": lambda r, look: _numbered(r, look, issues=True, pulls=False, kind="an Issue"),
    "issueOrPullRequest": lambda r, look: _numbered(r, look, issues=True, pulls=True, kind="an issue or pull request"),
    "labels": lambda r, look: paginate_by_position([RepositoryItem(r, label) for label in r.labels], look.args),
    "repositoryTopics": lambda r, look: paginate_by_position([(r, topic) for topic in r.topics], look.args),
    "stargazers": lambda r, look: Connection([], r.stars, [], more_after=False, more_before=False),
    "forks": lambda r, look: Connection([], r.forks, [], more_after=False, more_before=False),
    "watchers": resolve_none,
    "releases": resolve_none,
    "milestones": resolve_none,
    "latestRelease": make_constant_resolver(None),
}

COMMIT: Fields = {
    "oid": lambda w, _: w.thing.oid,
    "id": lambda w, _: encode_node_id("C", w.repository.id, w.thing.oid),
    "abbreviatedOid": lambda w, _: w.thing.oid[:7],
    "repository": lambda w, _: w.repository,
    "message": lambda w, _: w.thing.message,
    "messageHeadline": lambda w, _: w.thing.message.partition("\n")[0],
    "messageBody": lambda w, _: w.thing.message.partition("\n")[2].strip(),
    "committedDate": lambda w, _: w.thing.committer[2],
    "authoredDate": lambda w, _: w.thing.author[2],
    "author": lambda w, _: w.thing.author,
    "committer": lambda w, _: w.thing.committer,
    "url": lambda w, look: f"{look.ask.root}/{w.repository.full_name}/commit/{w.thing.oid}",
    "parents": lambda w, look: paginate_by_position(
        [RepositoryItem(w.repository, GitCommit(w.thing.reader, oid)) for oid in w.thing.parents], look.args
    ),
    "tree": lambda w, _: w,
    "statusCheckRollup": PULL_REQUEST["statusCheckRollup"],
    "changedFilesIfAvailable": make_constant_resolver(None),
}


def _repository(_: Any, look: QueryContext) -> ServerRepository:
    name = f"{look.args['owner']}/{look.args['name']}"
    repository = look.repository(name, follow=look.args.get("followRenames", True))
    if not repository:
        raise GraphQLRequestError("NOT_FOUND", f"Could not resolve to a Repository with the name '{name}'.")
    if repository.blocked:
        raise GraphQLRequestError("FORBIDDEN", "Repository access blocked")
    return repository


def _node(text: str, look: QueryContext) -> Any:
    if (placed := look.world.find_thread(text)) and look.ask.can_read(placed[0]):
        repository, pull, thread = placed
        return RepositoryItem(repository, thread, RepositoryItem(repository, pull))
    node = look.world.find_node(text)
    if not node or not look.ask.can_read(node[0]):
        return None
    repository, thing = node
    return RepositoryItem(repository, thing) if thing else repository


def _one_node(_: Any, look: QueryContext) -> Any:
    node = _node(look.args["id"], look)
    if not node:
        raise _no_node(look.args["id"])
    return node


def _no_node(text: str) -> GraphQLRequestError:
    return GraphQLRequestError("NOT_FOUND", f"Could not resolve to a node with the global id of '{text}'.")


def _nodes(_: Any, look: QueryContext) -> list[Any]:
    if len(look.args["ids"]) > 100:
        raise GraphQLRequestError("ARGUMENT_LIMIT", "You may not provide more than 100 node ids; you provided more.")
    return [_node(text, look) or _no_node(text) for text in look.args["ids"]]


def _search(_: Any, look: QueryContext) -> Connection:
    if look.args["type"] != "REPOSITORY":
        raise GraphQLRequestError("UNANSWERED", "only repositories can be searched for here")
    words = look.args["query"].lower().split()
    repositories = [r for r in look.world if look.ask.can_read(r) and matches_search(r, words)]
    return paginate_by_position(sorted(repositories, key=lambda r: (-r.stars, r.id)), look.args)


def matches_search(repository: ServerRepository, words: list[str]) -> bool:
    """Return whether a repository matches a search with words, "language:", "stars:>=", "user:" and "archived:"."""
    for word in words:
        name, colon, value = word.partition(":")
        fits = {
            "language": lambda v: (repository.language or "").lower() == v,
            "stars": lambda v: _in_range(repository.stars, v),
            "user": lambda v: repository.owner.login.lower() == v,
            "org": lambda v: repository.owner.login.lower() == v,
            "archived": lambda v: repository.archived == (v == "true"),
            "fork": lambda v: v == "true" or repository.fork_of is None,
            "topic": lambda v: v in repository.topics,
            "is": lambda v: v == "public",
            "pushed": lambda v: _in_range(repository.pushed_at, v),
        }.get(name)
        if not (fits(value) if colon and fits else word in repository.full_name.lower()):
            return False
    return True


def _in_range(value: Any, text: str) -> bool:
    kind = type(value)
    low, dots, high = text.partition("..")
    if dots:
        return bool((low in ("", "*") or value >= kind(low)) and (high in ("", "*") or value <= kind(high)))
    for sign in (">=", "<=", ">", "<"):
        if text.startswith(sign):
            bound = kind(text.removeprefix(sign))
            return bool({">=": value >= bound, "<=": value <= bound, ">": value > bound, "<": value < bound}[sign])
    return bool(value == kind(text))


def _viewer(_: Any, look: QueryContext) -> Actor:
    return look.world.actor(look.ask.token.login if look.ask.token else "ghost")


FIELDS: dict[str, Fields] = {
    "Query": {
        "repository": _repository,
        "node": _one_node,
        "nodes": _nodes,
        "search": _search,
        "viewer": _viewer,
        "rateLimit": lambda _, look: look.rate_limit,
        "repositoryOwner": lambda _, look: look.world.actors.get(look.args["login"]),
    },
    "Repository": REPOSITORY,
    "PullRequest": PULL_REQUEST,
    "Issue": ISSUE,
    "IssueComment": ISSUE_COMMENT,
    "PullRequestReviewThread": THREAD,
    "PullRequestReviewComment": REVIEW_COMMENT,
    "PullRequestReview": REVIEW,
    "Label": LABEL,
    "StatusCheckRollup": ROLLUP,
    "Commit": COMMIT,
    "User": ACTOR,
    "Bot": ACTOR,
    "Organization": ACTOR,
    "Mannequin": ACTOR,
    "License": {
        "key": lambda v, _: v[0],
        "name": lambda v, _: v[1],
        "spdxId": lambda v, _: v[2],
        "id": lambda v, _: encode_node_id("L", v[0]),
        "url": lambda v, look: f"{look.ask.root}/licenses/{v[0]}",
        "pseudoLicense": lambda v, _: v[0] == "other",
    },
    "Language": {
        "name": lambda v, _: v[0],
        "id": lambda v, _: encode_node_id("LG", v[0]),
        "color": make_constant_resolver("#3572A5"),
    },
    "Ref": {
        "name": lambda v, _: v.name.removeprefix("refs/heads/"),
        "prefix": make_constant_resolver("refs/heads/"),
        "target": _target,
        "id": lambda v, _: encode_node_id("REF", v.name),
    },
    "Tree": {"oid": lambda w, _: w.thing.tree, "id": lambda w, _: encode_node_id("T", w.thing.tree)},
    "Blob": {"oid": lambda w, _: w.thing.oid, "id": lambda w, _: encode_node_id("B", w.thing.oid)},
    "GitActor": {
        "name": lambda v, _: v[0],
        "email": lambda v, _: v[1],
        "date": lambda v, _: v[2],
        "user": make_constant_resolver(None),
    },
    "PullRequestCommit": {
        "commit": lambda w, _: w,
        "id": lambda w, _: encode_node_id("PURC", w.thing.oid),
        "pullRequest": lambda w, _: w.inside,
    },
    "PullRequestChangedFile": {
        "path": "path",
        "additions": "additions",
        "deletions": "deletions",
        "changeType": "change",
        "viewerViewedState": make_constant_resolver("UNVIEWED"),
    },
    "RepositoryTopic": {
        "topic": lambda v, _: v[1],
        "id": lambda v, _: encode_node_id("RT", v[0].id, v[1]),
        "url": lambda v, look: f"{look.ask.root}/topics/{v[1]}",
    },
    "Topic": {"name": lambda v, _: v, "id": lambda v, _: encode_node_id("TO", v)},
}

KINDS: dict[type, str] = {
    ServerPullRequest: "PullRequest",
    Issue: "Issue",
    ReviewComment: "PullRequestReviewComment",
    ServerComment: "IssueComment",
    ServerReviewThread: "PullRequestReviewThread",
    PullRequestReview: "PullRequestReview",
    Label: "Label",
    GitCommit: "Commit",
    ChangedFile: "PullRequestChangedFile",
    GitFolder: "Tree",
    GitFile: "Blob",
}


def get_type_name(value: Any) -> str:
    """Return the GraphQL type of an object, for fields whose type is an interface or a union."""
    if isinstance(value, ServerRepository):
        return "Repository"
    return value.kind if isinstance(value, Actor) else KINDS[type(value.thing)]


def format_iso(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
