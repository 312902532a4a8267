"""Build the record of a pull request from journal and clone. Nothing is requested here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from miner.github.discussions import build_issue_key, build_thread_key
from miner.github.merges import MergedPullRequest
from taskdb.records import PullRequest
from taskdb.records.discussion import AuthorKind, Comment, Discussion, IssueLink, LinkedIssue, ReviewThread

_KINDS = {
    "User": AuthorKind.USER,
    "EnterpriseUserAccount": AuthorKind.USER,
    "Bot": AuthorKind.BOT,
    "Organization": AuthorKind.ORGANIZATION,
    "Mannequin": AuthorKind.MANNEQUIN,
}
_GHOST = "ghost"
"""Account that GitHub shows in place of a deleted account."""


@dataclass(frozen=True)
class PullRequestFacts:
    """Everything known about a pull request."""

    merged: MergedPullRequest
    links: tuple[IssueLink, ...]
    threads: Sequence[str]
    """Ids of its review threads."""

    @property
    def issues(self) -> tuple[str, ...]:
        """Linked issues, each once."""
        return tuple(dict.fromkeys(link.issue for link in self.links))

    @property
    def journal_keys(self) -> list[str]:
        """Journal keys of its issues and threads."""
        return [*map(build_issue_key, self.issues), *map(build_thread_key, self.threads)]


def build_pull_request(
    facts: PullRequestFacts, answers: Mapping[str, Any], *, source: str, repo: str, keep: Callable[[str], str]
) -> PullRequest:
    """Build the record.

    Args:
        facts: facts about the pull request.
        answers: answers of the journal, for `facts.journal_keys`.
        source: the source word, for the record.
        repo: `owner/name`, for the record.
        keep: store a text as an artifact and return its hash.
    """
    merged, body = facts.merged, facts.merged.pull.body
    cut = merged.first_commit_at or format_utc(body["createdAt"])
    issues, threads = _build_discussion(facts, answers, cut)
    closed = _list_closed_issues(facts.links, issues)
    author, kind = _parse_account(body["author"])
    rollup = body["statusCheckRollup"]
    return PullRequest(
        source=source,
        repo=repo,
        name=f"{repo.replace('/', '__')}-{merged.pull.number}",
        number=merged.pull.number,
        shape=merged.shape,
        title=body["title"].strip(),
        body=_clean_text(body["body"]),
        author=author,
        author_kind=kind,
        merged_at=format_utc(merged.pull.merged_at),
        base_commit=merged.base,
        merge_commit=merged.merge,
        problem_statement="\n\n".join(f"{issue.title}\n\n{issue.body}".strip() for issue in closed),
        hints="\n\n".join(remark.text for issue in closed for remark in issue.before),
        labels=_list_labels(body),
        links=facts.links,
        discussion=_store_discussion(issues, threads, keep),
        head_commit=merged.head,
        first_commit_at=merged.first_commit_at,
        base_ref=body["baseRefName"],
        checks=rollup["state"].lower() if rollup else None,
    )


def _build_discussion(
    facts: PullRequestFacts, answers: Mapping[str, Any], cut: str
) -> tuple[tuple[LinkedIssue, ...], tuple[ReviewThread, ...]]:
    issues = tuple(
        build_linked_issue(issue, answer, cut)
        for issue in facts.issues
        if (answer := _find_answer(answers, build_issue_key(issue)))
    )
    threads = tuple(
        thread for key in facts.threads if (thread := build_review_thread(_find_answer(answers, build_thread_key(key))))
    )
    return issues, threads


def format_utc(when: str) -> str:
    """Convert a date of the forge to the format of records."""
    return datetime.fromisoformat(when).astimezone(UTC).isoformat(timespec="seconds")


def build_linked_issue(issue: str, answer: Mapping[str, Any], cut: str) -> LinkedIssue:
    """Build an issue, its comments split at the date `cut`; a pull request has title and state only."""
    author, kind = _parse_account(answer["author"])
    is_pull = answer["__typename"] == "PullRequest"
    remarks = [] if is_pull else list(_build_comments(answer["comments"]))
    return LinkedIssue(
        issue=issue,
        title=answer["title"].strip(),
        body="" if is_pull else _clean_text(answer["body"]),
        author=author,
        author_kind=kind,
        created_at=format_utc(answer["createdAt"]),
        labels=() if is_pull else _list_labels(answer),
        is_pull_request=is_pull,
        before=tuple(remark for remark in remarks if remark.at <= cut),
        after=tuple(remark for remark in remarks if remark.at > cut),
    )


def build_review_thread(answer: Mapping[str, Any] | None) -> ReviewThread | None:
    """Build a review thread; None when all its comments are deleted."""
    comments = [node for node in answer["comments"] if node] if answer else []
    if not answer or not comments:
        return None
    first = comments[0]
    side: Literal["left", "right"] = "left" if answer["diffSide"] == "LEFT" else "right"
    return ReviewThread(
        path=answer["path"],
        side=side,
        line=answer["line"],
        start_line=answer["startLine"],
        original_line=answer["originalLine"],
        original_start_line=answer["originalStartLine"],
        commit=(first["originalCommit"] or {}).get("oid"),
        diff_hunk=_clean_text(first["diffHunk"]),
        resolved=answer["isResolved"],
        outdated=answer["isOutdated"],
        remarks=tuple(_build_comments(comments)),
    )


def _list_closed_issues(links: Sequence[IssueLink], issues: Sequence[LinkedIssue]) -> list[LinkedIssue]:
    """List the issues that the change claims to close, in the order of the links."""
    claimed = {link.issue for link in links if link.closes}
    return [issue for issue in issues if issue.issue in claimed and not issue.is_pull_request]


def _store_discussion(
    issues: tuple[LinkedIssue, ...], threads: tuple[ReviewThread, ...], keep: Callable[[str], str]
) -> str | None:
    if not issues and not threads:
        return None
    whole = Discussion(issues=issues, threads=threads).model_dump(mode="json")
    return keep(json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _find_answer(answers: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """Return an answer with content, or None."""
    answer = answers.get(key)
    return answer if answer and answer.get("__typename") != "Missing" else None


def _build_comments(nodes: Iterable[Mapping[str, Any] | None]) -> Iterable[Comment]:
    for node in nodes:
        if node:
            author, kind = _parse_account(node["author"])
            yield Comment(
                author=author, author_kind=kind, at=format_utc(node["createdAt"]), text=_clean_text(node["body"])
            )


def _list_labels(node: Mapping[str, Any]) -> tuple[str, ...]:
    labels = (node["labels"] or {}).get("nodes") or ()
    return tuple(sorted(label["name"] for label in labels if label))


def _parse_account(author: Mapping[str, Any] | None) -> tuple[str, AuthorKind]:
    """Return name and kind of an account; a bot's name as in REST, which is its public name."""
    if author is None:
        return _GHOST, AuthorKind.DELETED
    kind = _KINDS.get(author["__typename"], AuthorKind.UNKNOWN)
    return f"{author['login']}[bot]" if kind is AuthorKind.BOT else author["login"], kind


def _clean_text(text: str | None) -> str:
    return (text or "").replace("\r\n", "\n")
