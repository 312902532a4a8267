"""A pull request's record, made of what the journal and the clone hold of it. Nothing is asked here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from miner.github.merges import Merged
from miner.github.talk import issue_key, thread_key
from taskdb.discussion import AuthorKind, Discussion, IssueLink, LinkedIssue, Remark, ReviewThread
from taskdb.records import PullRequest

_KINDS = {
    "User": AuthorKind.USER, "EnterpriseUserAccount": AuthorKind.USER, "Bot": AuthorKind.BOT,
    "Organization": AuthorKind.ORGANIZATION, "Mannequin": AuthorKind.MANNEQUIN,
}  # fmt: skip
_GHOST = "ghost"
"""Whom GitHub shows in the place of a deleted account."""


@dataclass(frozen=True)
class Facts:
    """All that is known of one pull request."""

    merged: Merged
    links: tuple[IssueLink, ...]
    threads: Sequence[str]
    """Ids of its review threads."""

    @property
    def issues(self) -> tuple[str, ...]:
        """The issues it speaks of, each once."""
        return tuple(dict.fromkeys(link.issue for link in self.links))

    @property
    def keys(self) -> list[str]:
        """What the journal is asked for."""
        return [*map(issue_key, self.issues), *map(thread_key, self.threads)]


def record(
    facts: Facts, answers: Mapping[str, Any], *, source: str, repo: str, keep: Callable[[str], str]
) -> PullRequest:
    """The record.

    Args:
        facts: what was found out.
        answers: of the journal, for `facts.keys`.
        source: the source word, for the record.
        repo: `owner/name`, for the record.
        keep: puts a text among the artifacts; its hash.
    """
    merged, said = facts.merged, facts.merged.pull.body
    cut = merged.first_commit_at or utc(said["createdAt"])
    issues = tuple(
        linked_issue(issue, answer, cut) for issue in facts.issues if (answer := _told(answers, issue_key(issue)))
    )
    threads = tuple(found for key in facts.threads if (found := review_thread(_told(answers, thread_key(key)))))
    closed = _closed(facts.links, issues)
    author, kind = _who(said["author"])
    rollup = said["statusCheckRollup"]
    return PullRequest(
        source=source, repo=repo, name=f"{repo.replace('/', '__')}-{merged.pull.number}", number=merged.pull.number,
        shape=merged.shape, title=said["title"].strip(), body=_text(said["body"]), author=author, author_kind=kind,
        merged_at=utc(merged.pull.merged_at), base_commit=merged.base, merge_commit=merged.merge,
        problem_statement="\n\n".join(f"{one.title}\n\n{one.body}".strip() for one in closed),
        hints="\n\n".join(remark.text for one in closed for remark in one.before),
        labels=_labels(said), links=facts.links, discussion=_discussion(issues, threads, keep),
        head_commit=merged.head, first_commit_at=merged.first_commit_at, base_ref=said["baseRefName"],
        checks=rollup["state"].lower() if rollup else None,
    )  # fmt: skip


def utc(when: str) -> str:
    """A date of the forge's as records have it."""
    return datetime.fromisoformat(when).astimezone(UTC).isoformat(timespec="seconds")


def linked_issue(issue: str, answer: Mapping[str, Any], cut: str) -> LinkedIssue:
    """An issue, its comments parted at the date `cut`; of a pull request only what it is."""
    author, kind = _who(answer["author"])
    is_pull = answer["__typename"] == "PullRequest"
    remarks = [] if is_pull else list(_remarks(answer["comments"]))
    return LinkedIssue(
        issue=issue, title=answer["title"].strip(), body="" if is_pull else _text(answer["body"]), author=author,
        author_kind=kind, created_at=utc(answer["createdAt"]), labels=() if is_pull else _labels(answer),
        is_pull_request=is_pull, before=tuple(remark for remark in remarks if remark.at <= cut),
        after=tuple(remark for remark in remarks if remark.at > cut),
    )  # fmt: skip


def review_thread(answer: Mapping[str, Any] | None) -> ReviewThread | None:
    """A review thread; None when all that was said in it is deleted."""
    comments = [node for node in answer["comments"] if node] if answer else []
    if not answer or not comments:
        return None
    first = comments[0]
    side: Literal["left", "right"] = "left" if answer["diffSide"] == "LEFT" else "right"
    return ReviewThread(
        path=answer["path"], side=side, line=answer["line"], start_line=answer["startLine"],
        original_line=answer["originalLine"], original_start_line=answer["originalStartLine"],
        commit=(first["originalCommit"] or {}).get("oid"), diff_hunk=_text(first["diffHunk"]),
        resolved=answer["isResolved"], outdated=answer["isOutdated"], remarks=tuple(_remarks(comments)),
    )  # fmt: skip


def _closed(links: Sequence[IssueLink], issues: Sequence[LinkedIssue]) -> list[LinkedIssue]:
    """The issues that the change claims to close, in the order of the links."""
    claimed = {link.issue for link in links if link.closes}
    return [issue for issue in issues if issue.issue in claimed and not issue.is_pull_request]


def _discussion(
    issues: tuple[LinkedIssue, ...], threads: tuple[ReviewThread, ...], keep: Callable[[str], str]
) -> str | None:
    if not issues and not threads:
        return None
    whole = Discussion(issues=issues, threads=threads).model_dump(mode="json")
    return keep(json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _told(answers: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """An answer that tells of something."""
    answer = answers.get(key)
    return answer if answer and answer.get("__typename") != "Missing" else None


def _remarks(nodes: Iterable[Mapping[str, Any] | None]) -> Iterable[Remark]:
    for node in nodes:
        if node:
            author, kind = _who(node["author"])
            yield Remark(author=author, author_kind=kind, at=utc(node["createdAt"]), text=_text(node["body"]))


def _labels(node: Mapping[str, Any]) -> tuple[str, ...]:
    labels = (node["labels"] or {}).get("nodes") or ()
    return tuple(sorted(label["name"] for label in labels if label))


def _who(author: Mapping[str, Any] | None) -> tuple[str, AuthorKind]:
    """Name and kind of an account; a bot's name as REST writes it, which is how people know it."""
    if author is None:
        return _GHOST, AuthorKind.DELETED
    kind = _KINDS.get(author["__typename"], AuthorKind.UNKNOWN)
    return f"{author['login']}[bot]" if kind is AuthorKind.BOT else author["login"], kind


def _text(text: str | None) -> str:
    return (text or "").replace("\r\n", "\n")
