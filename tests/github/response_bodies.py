"""Bodies of the REST API, shaped by GitHub's OpenAPI description. `api` and `root` are this server's addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.github.ids import encode_node_id
from tests.github.world import (
    Actor,
    Issue,
    Label,
    ReviewComment,
    ServerComment,
    ServerPullRequest,
    ServerRepository,
    ServerReviewThread,
    World,
)

Body = dict[str, Any]

# the addresses in a repository's body, below its own
BELOW = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
OF_USER = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
GHOST = Actor("ghost", 10137)


@dataclass(slots=True, frozen=True)
class ResponseBodies:
    """Writes bodies with the addresses of one request's server."""

    world: World
    root: str
    api: str

    def actor(self, actor: Actor) -> Body:
        url = f"{self.api}/users/{actor.rest_login}"
        return {
            "login": actor.rest_login,
            "id": actor.id,
            "node_id": encode_node_id("U", actor.id),
            "gravatar_id": "",
            "avatar_url": f"{self.root}/avatars/{actor.id}",
            "url": url,
            "html_url": f"{self.root}/{actor.login}",
            "type": actor.kind,
            "user_view_type": "public",
            "site_admin": False,
        } | {name: url + below for name, below in OF_USER.items()}

    def optional_actor(self, actor: Actor | None) -> Body | None:
        return self.actor(actor) if actor else None

    def viewer(self, actor: Actor) -> Body:
        """GET /user of a token that may not read private fields."""
        unknown = dict.fromkeys(("company", "blog", "location", "email", "hireable", "bio"))
        counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
        times = {"created_at": "2015-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z"}
        return self.actor(actor) | {"name": actor.name} | unknown | counts | times

    def label(self, repository: ServerRepository, label: Label) -> Body:
        return {
            "id": label.id,
            "node_id": encode_node_id("LA", repository.id, label.id),
            "name": label.name,
            "url": f"{self.url(repository)}/labels/{label.name}".replace(" ", "%20"),
            "color": label.color,
            "default": False,
            "description": label.description,
        }

    def url(self, repository: ServerRepository) -> str:
        return f"{self.api}/repos/{repository.full_name}"

    def repository(self, repository: ServerRepository) -> Body:
        """Return the repository as in lists and pull requests."""
        html, still_open = f"{self.root}/{repository.full_name}", self._open(repository)
        license_body = repository.license and {
            "key": repository.license[0],
            "name": repository.license[1],
            "spdx_id": repository.license[2],
            "url": f"{self.api}/licenses/{repository.license[0]}",
            "node_id": encode_node_id("L", repository.license[0]),
        }
        return {
            "id": repository.id,
            "node_id": encode_node_id("R", repository.id),
            "name": repository.name,
            "full_name": repository.full_name,
            "private": repository.private,
            "owner": self.actor(repository.owner),
            "html_url": html,
            "description": repository.description,
            "fork": repository.fork_of is not None,
            "url": self.url(repository),
            "created_at": repository.created_at,
            "updated_at": repository.updated_at,
            "pushed_at": repository.pushed_at,
            "git_url": f"{html.replace('http', 'git', 1)}.git",
            "ssh_url": f"git@localhost:{repository.full_name}.git",
            "clone_url": f"{html}.git",
            "svn_url": html,
            "homepage": None,
            "size": 100 + sum(repository.languages.values()) // 1024,
            "stargazers_count": repository.stars,
            "watchers_count": repository.stars,
            "watchers": repository.stars,
            "language": repository.language,
            "has_issues": repository.issues_enabled,
            "has_projects": True,
            "has_downloads": True,
            "has_wiki": False,
            "has_pages": False,
            "has_discussions": False,
            "forks_count": repository.forks,
            "forks": repository.forks,
            "mirror_url": None,
            "archived": repository.archived,
            "disabled": False,
            "open_issues_count": still_open,
            "open_issues": still_open,
            "license": license_body,
            "allow_forking": True,
            "is_template": False,
            "web_commit_signoff_required": False,
            "topics": repository.topics,
            "visibility": "private" if repository.private else "public",
            "default_branch": repository.default_branch,
        } | {name: self.url(repository) + below for name, below in BELOW.items()}

    def full_repository(self, repository: ServerRepository) -> Body:
        """Return the repository of a GET: a fork includes its parent."""
        body = self.repository(repository) | {"network_count": repository.forks, "subscribers_count": 1}
        parent = self.world.find(repository.fork_of) if repository.fork_of else None
        return body | ({"parent": self.repository(parent), "source": self.repository(parent)} if parent else {})

    def _open(self, repository: ServerRepository) -> int:
        everything = [*repository.issues.values(), *repository.pulls.values()]
        return sum(1 for thing in everything if not thing.closed_at)

    def _common_fields(self, repository: ServerRepository, thing: Issue | ServerPullRequest) -> Body:
        """Return the fields that issues and pull requests have in common."""
        return {
            "number": thing.number,
            "state": "open" if not thing.closed_at else "closed",
            "locked": thing.locked,
            "active_lock_reason": "resolved" if thing.locked else None,
            "title": thing.title,
            "body": thing.body,
            "labels": [self.label(repository, label) for label in thing.labels],
            "milestone": None,
            "created_at": thing.created_at,
            "updated_at": thing.updated_at,
            "closed_at": thing.closed_at,
            "assignee": None,
            "assignees": [],
            "author_association": thing.association,
        }

    def pull(self, repository: ServerRepository, pull: ServerPullRequest, *, whole: bool = False) -> Body:
        """Return a pull request of a list, or the `whole` one with the dozen fields that lists lack."""
        url, number = self.url(repository), pull.number
        html, issue = f"{self.root}/{repository.full_name}/pull/{number}", f"{url}/issues/{number}"
        links = {
            "self": f"{url}/pulls/{number}",
            "html": html,
            "issue": issue,
            "comments": f"{issue}/comments",
            "review_comments": f"{url}/pulls/{number}/comments",
            "commits": f"{url}/pulls/{number}/commits",
            "review_comment": f"{url}/pulls/comments{{/number}}",
            "statuses": f"{url}/statuses/{pull.head_sha}",
        }
        body = self._common_fields(repository, pull) | {
            "url": links["self"],
            "id": pull.id,
            "node_id": encode_node_id("PR", repository.id, number),
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "issue_url": issue,
            "user": self.optional_actor(pull.author),
            "commits_url": links["commits"],
            "review_comments_url": links["review_comments"],
            "review_comment_url": links["review_comment"],
            "comments_url": links["comments"],
            "statuses_url": links["statuses"],
            "merged_at": pull.merged_at,
            "draft": pull.draft,
            "merge_commit_sha": pull.merge_commit or pull.test_merge,
            "requested_reviewers": [],
            "requested_teams": [],
            "auto_merge": None,
            "_links": {name: {"href": to} for name, to in links.items()},
            "head": self._branch_end(
                self.world.find(pull.head_repo) if pull.head_repo else None,
                pull.head_owner,
                pull.head_ref,
                pull.head_sha,
            ),
            "base": self._branch_end(repository, repository.owner, pull.base_ref, pull.base_sha),
        }
        if not whole:
            return body
        return body | {
            "user": self.actor(pull.author or GHOST),
            "merged": pull.merged_at is not None,
            "mergeable": None if pull.closed_at else True,
            "rebaseable": None,
            "mergeable_state": "unknown" if pull.closed_at else "clean",
            "merged_by": self.optional_actor(pull.merged_by),
            "comments": len(pull.comments),
            "review_comments": sum(len(t.comments) for t in pull.threads),
            "maintainer_can_modify": False,
            "commits": pull.commits,
            "additions": pull.additions,
            "deletions": pull.deletions,
            "changed_files": pull.changed_files,
        }

    def _branch_end(self, repository: ServerRepository | None, owner: Actor | None, ref: str, sha: str) -> Body:
        """Return head or base. A deleted fork is null, and so is a deleted account."""
        label = f"{owner.login if owner else 'unknown'}:{ref}"
        body = self.repository(repository) if repository else None
        return {"label": label, "ref": ref, "sha": sha, "user": self.optional_actor(owner), "repo": body}

    def issue(self, repository: ServerRepository, thing: Issue | ServerPullRequest) -> Body:
        """Return an issue; a pull request is one as well, marked by `pull_request`."""
        url, kind = f"{self.url(repository)}/issues/{thing.number}", "issues"
        more: Body = {}
        if isinstance(thing, ServerPullRequest):
            kind = "pull"
            html = f"{self.root}/{repository.full_name}/pull/{thing.number}"
            more["pull_request"] = {
                "url": f"{self.url(repository)}/pulls/{thing.number}",
                "html_url": html,
                "diff_url": f"{html}.diff",
                "patch_url": f"{html}.patch",
                "merged_at": thing.merged_at,
            }
            more["draft"] = thing.draft
        elif thing.state_reason:
            more["state_reason"] = thing.state_reason.lower()
        return (
            self._common_fields(repository, thing)
            | more
            | {
                "url": url,
                "repository_url": self.url(repository),
                "labels_url": f"{url}/labels{{/name}}",
                "comments_url": f"{url}/comments",
                "events_url": f"{url}/events",
                "timeline_url": f"{url}/timeline",
                "html_url": f"{self.root}/{repository.full_name}/{kind}/{thing.number}",
                "id": thing.id,
                "node_id": encode_node_id("PR" if kind == "pull" else "I", repository.id, thing.number),
                "user": self.optional_actor(thing.author),
                "comments": len(thing.comments),
                "performed_via_github_app": None,
            }
        )

    def comment(self, repository: ServerRepository, thing: Issue | ServerPullRequest, comment: ServerComment) -> Body:
        url, kind = self.url(repository), "pull" if isinstance(thing, ServerPullRequest) else "issues"
        return {
            "id": comment.id,
            "node_id": encode_node_id("IC", repository.id, comment.id),
            "body": comment.body,
            "url": f"{url}/issues/comments/{comment.id}",
            "issue_url": f"{url}/issues/{thing.number}",
            "html_url": f"{self.root}/{repository.full_name}/{kind}/{thing.number}#issuecomment-{comment.id}",
            "user": self.optional_actor(comment.author),
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
            "author_association": comment.association,
            "performed_via_github_app": None,
        }

    def review_comment(
        self, repository: ServerRepository, pull: ServerPullRequest, thread: ServerReviewThread, comment: ReviewComment
    ) -> Body:
        """Return a comment on the diff; an outdated one has no `line`."""
        url = f"{self.url(repository)}/pulls"
        html = f"{self.root}/{repository.full_name}/pull/{pull.number}#discussion_r{comment.id}"
        links = {"self": f"{url}/comments/{comment.id}", "html": html, "pull_request": f"{url}/{pull.number}"}
        body: Body = {
            "url": links["self"],
            "pull_request_review_id": None,
            "id": comment.id,
            "diff_hunk": comment.diff_hunk,
            "node_id": encode_node_id("PRRC", repository.id, comment.id),
            "path": thread.path,
            "side": thread.side,
            "commit_id": comment.commit or pull.head_sha,
            "original_commit_id": comment.commit or pull.head_sha,
            "user": self.optional_actor(comment.author),
            "body": comment.body,
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
            "html_url": html,
            "pull_request_url": links["pull_request"],
            "author_association": comment.association,
            "start_line": thread.start_line,
            "original_start_line": thread.start_line,
            "start_side": thread.side if thread.start_line else None,
            "subject_type": thread.subject.lower(),
            "_links": {name: {"href": to} for name, to in links.items()},
        }
        lines = {"line": thread.line, "original_line": thread.original_line or thread.line}
        replied = {"in_reply_to_id": comment.reply_to}
        return body | {name: value for name, value in (lines | replied).items() if value is not None}
