"""Pages of mined changes: pull requests, issues, discussions, files and commits, linked to each other.

Each attribute of a page stands in its text as a line `Name: value` of its own, so that a quote of it is verbatim and a
program can decide whether a clue is true of a page. Attributes of linked pages have names with a full stop:
`closes.author` of a pull request is the author of an issue that it closes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from explorers.corpora.markup import clean_text
from explorers.corpora.pages import NO_ASSERTION, Page
from taskdb.records import Candidate, PullRequest
from taskdb.records.discussion import Discussion, LinkedIssue

Attributes = dict[str, list[str]]
PULL, ISSUE, DISCUSSION, FILE, COMMIT = "pull request", "issue", "discussion", "file", "commit"
LINKED = ("closes", "file", "commit", "discussion", "changed by", "pull request", "closed by")
"""Attributes whose values are ids of pages."""
FOLLOWED = {"closes": ("author", "created", "label"), "pull request": ("author", "merged", "label", "file")}
"""Attribute with a link -> attributes of the page there that the linking page has, too."""


@dataclass(frozen=True, kw_only=True)
class ChangeMaterial:
    """A change of the database. `candidate`, which has the files, is None where the miner rejected it."""

    pull: PullRequest
    candidate: Candidate | None = None
    discussion: Discussion = field(default_factory=Discussion)


@dataclass(kw_only=True)
class _Draft:
    """A page that several changes contribute to."""

    id: str
    title: str
    license: str
    date: str = ""
    body: str = ""
    attributes: Attributes = field(default_factory=dict)

    def add(self, name: str, *values: str) -> None:
        """Add values of an attribute, each once."""
        known = self.attributes.setdefault(name, [])
        known.extend(value for value in values if value and value not in known)


def make_pages(changes: Iterable[ChangeMaterial]) -> list[Page]:
    """Return the pages of changes, by id."""
    drafts: dict[str, _Draft] = {}
    for change in changes:
        for draft in _iterate_drafts(change):
            known = drafts.setdefault(draft.id, draft)
            for name, values in draft.attributes.items():
                known.add(name, *values)
    for draft in drafts.values():
        _follow_links(draft, drafts)
    return [_finish(drafts[key], drafts) for key in sorted(drafts)]


def _iterate_drafts(change: ChangeMaterial) -> Iterator[_Draft]:
    """Yield the pages that a change contributes to, its own first."""
    pull, candidate = change.pull, change.candidate
    license_id = candidate.license if candidate else NO_ASSERTION
    files = sorted({*candidate.gold_files, *candidate.test_files}) if candidate else []
    closed = list(dict.fromkeys(link.issue for link in pull.links if link.closes))
    own = _Draft(id=f"pull:{pull.name}", title=pull.title, license=license_id, date=pull.merged_at, body=pull.body)
    own.add("type", PULL)
    own.add("repository", pull.repo)
    own.add("number", str(pull.number) if pull.number is not None else "")
    own.add("author", pull.author)
    own.add("merged", pull.merged_at[:10])
    own.add("label", *pull.labels)
    own.add("version", pull.version)
    own.add("closes", *(f"issue:{issue}" for issue in closed))
    own.add("file", *(f"file:{pull.repo}/{path}" for path in files))
    own.add("commit", f"commit:{pull.merge_commit}")
    if change.discussion.threads:
        own.add("discussion", f"discussion:{pull.name}")
        yield _draft_discussion(change, license_id)
    yield own
    yield _draft_commit(pull, license_id)
    yield from (_draft_issue(issue, own, license_id) for issue in change.discussion.issues)
    yield from (_draft_bare_issue(issue, own, license_id) for issue in closed)
    yield from (_draft_file(pull, path, license_id) for path in files)


def _draft_commit(pull: PullRequest, license_id: str) -> _Draft:
    draft = _Draft(id=f"commit:{pull.merge_commit}", title=f"Commit {pull.merge_commit[:12]}", license=license_id)
    draft.date, draft.body = pull.merged_at, pull.title
    draft.add("type", COMMIT)
    draft.add("repository", pull.repo)
    draft.add("hash", pull.merge_commit)
    draft.add("parent", pull.base_commit)
    draft.add("pull request", f"pull:{pull.name}")
    return draft


def _draft_issue(issue: LinkedIssue, pull: _Draft, license_id: str) -> _Draft:
    comments = [f"{comment.author} wrote: {comment.text}" for comment in (*issue.before, *issue.after)]
    body = "\n\n".join([issue.body, *comments])
    draft = _Draft(id=f"issue:{issue.issue}", title=issue.title, license=license_id, date=issue.created_at, body=body)
    draft.add("type", PULL if issue.is_pull_request else ISSUE)
    draft.add("author", issue.author)
    draft.add("created", issue.created_at[:10])
    draft.add("label", *issue.labels)
    draft.add("commenter", *(comment.author for comment in (*issue.before, *issue.after)))
    if draft.id in pull.attributes["closes"]:
        draft.add("closed by", pull.id)
    return draft


def _draft_bare_issue(issue: str, pull: _Draft, license_id: str) -> _Draft:
    """Return the page of an issue of which only the number may be known; another draft has the rest."""
    draft = _Draft(id=f"issue:{issue}", title=f"Issue {issue}", license=license_id)
    draft.add("type", ISSUE)
    draft.add("closed by", pull.id)
    return draft


def _draft_discussion(change: ChangeMaterial, license_id: str) -> _Draft:
    pull, threads = change.pull, change.discussion.threads
    remarks = [f"{remark.author} on {thread.path}: {remark.text}" for thread in threads for remark in thread.remarks]
    draft = _Draft(id=f"discussion:{pull.name}", title=f"Review of {pull.title}", license=license_id)
    draft.date, draft.body = pull.merged_at, "\n\n".join(remarks)
    draft.add("type", DISCUSSION)
    draft.add("pull request", f"pull:{pull.name}")
    draft.add("reviewer", *(remark.author for thread in threads for remark in thread.remarks))
    draft.add("file", *(f"file:{pull.repo}/{thread.path}" for thread in threads))
    return draft


def _draft_file(pull: PullRequest, path: str, license_id: str) -> _Draft:
    draft = _Draft(id=f"file:{pull.repo}/{path}", title=path, license=license_id, date=pull.merged_at)
    draft.add("type", FILE)
    draft.add("repository", pull.repo)
    draft.add("path", path)
    draft.add("name", path.rpartition("/")[2])
    draft.add("changed by", f"pull:{pull.name}")
    return draft


def _follow_links(draft: _Draft, drafts: Mapping[str, _Draft]) -> None:
    for link, names in FOLLOWED.items():
        for target in (drafts[key] for key in draft.attributes.get(link, ()) if key in drafts):
            for name in names:
                draft.add(f"{link}.{name}", *target.attributes.get(name, ()))


def _finish(draft: _Draft, drafts: Mapping[str, _Draft]) -> Page:
    attributes = {name: tuple(values) for name, values in draft.attributes.items() if values}
    lines = [f"{name.capitalize()}: {value}" for name, values in attributes.items() for value in values]
    links = [value for name in LINKED for value in attributes.get(name, ()) if value in drafts]
    text = "\n\n".join(part for part in (draft.title, "\n".join(lines), draft.body) if part)
    page = Page(id=draft.id, url=draft.id, title=draft.title or draft.id, text=clean_text(text), date=draft.date)
    return replace(page, links=tuple(dict.fromkeys(links)), license=draft.license, attributes=attributes)
