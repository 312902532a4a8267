"""Read all commits of a repository with a single `git log`, not a process per commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from backends.git import GitRepository

PULLS = "refs/pull/*/head"
"""Refs in which a mirror of a forge's repository keeps the tips of pull requests."""

_FORMAT = "%H%x1f%P%x1f%an%x1f%ae%x1f%at%x1f%ct%x1f%S%x1f%B"
_OPTIONS = ("-z", "--encoding=UTF-8", "--no-show-signature", "--source", f"--format={_FORMAT}")


class Commit(NamedTuple):
    """A commit. `authored` and `committed` are seconds since 1970; `source` is the ref that reaches it."""

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored: str
    committed: str
    source: str
    message: str

    @property
    def committed_at(self) -> str:
        """Commit date, ISO 8601 in UTC."""
        return datetime.fromtimestamp(int(self.committed), UTC).isoformat(timespec="seconds")

    @property
    def subject(self) -> str:
        """First line of the message."""
        return self.message.partition("\n")[0].strip()


@dataclass(frozen=True, slots=True)
class MainlineStep:
    """A commit of the first-parent line and, for a merge, the merged commits, newest first."""

    commit: Commit
    merged_commits: tuple[Commit, ...]


@dataclass(frozen=True, slots=True)
class CommitHistory:
    """All commits reachable from a head or from pull requests."""

    mainline: tuple[MainlineStep, ...]
    """First-parent line of the head, newest first."""
    unmerged: tuple[Commit, ...]
    """Commits that only refs of pull requests reach, newest first."""


def read_history(repository: GitRepository, head: str) -> CommitHistory:
    """Read the history of the commit `head` and, in the same pass, the commits of pull requests."""
    commits = {commit.sha: commit for commit in _stream_commits(repository, head)}
    ordered = _sort_children_first(commits[head], commits)
    merged = {commit.sha for commit in ordered}
    return CommitHistory(tuple(_build_steps(ordered)), tuple(c for c in commits.values() if c.sha not in merged))


def read_commits(repository: GitRepository, shas: Iterable[str]) -> Iterator[Commit]:
    """Read these commits once each, in arbitrary order, with a single `git log`; their `source` is undefined."""
    listed = list(dict.fromkeys(shas))
    if listed:
        rows = (f"{sha}\n".encode() for sha in listed)
        yield from _parse_commits(repository.stream("log", *_OPTIONS, "--no-walk=unsorted", "--stdin", data=rows))


def _stream_commits(repository: GitRepository, head: str) -> Iterator[Commit]:
    return _parse_commits(repository.stream("log", *_OPTIONS, head, f"--glob={PULLS}"))


def _parse_commits(blocks: Iterable[bytes]) -> Iterator[Commit]:
    rest = b""
    for block in blocks:
        whole, nul, rest = (rest + block).rpartition(b"\0")
        if nul:
            yield from map(_parse_commit, whole.decode(errors="replace").split("\0"))


def _parse_commit(row: str) -> Commit:
    sha, parents, author, email, authored, committed, source, message = row.split("\x1f", 7)
    return Commit(sha, tuple(parents.split()), author, email, authored, committed, source, message.strip())


def _sort_children_first(head: Commit, commits: Mapping[str, Commit]) -> list[Commit]:
    """Yield `head` and its ancestors in the order of `git log --topo-order`.

    That is: a merge, the commits that only the merge reaches, its first parent.
    """
    children = {head.sha: 0}  # number of each commit's children that are still to be yielded
    shas = [head]
    while shas:
        for parent in shas.pop().parents:
            if parent not in children:
                children[parent] = 0
                shas.append(commits[parent])
            children[parent] += 1
    ordered, ready = [], [head]
    while ready:
        commit = ready.pop()
        ordered.append(commit)
        for parent in commit.parents:
            children[parent] -= 1
            if not children[parent]:
                ready.append(commits[parent])
    return ordered


def _build_steps(ordered: list[Commit]) -> Iterator[MainlineStep]:
    """Yield the first-parent line, each merge with the commits between it and its first parent."""
    head, brought = ordered[0], list[Commit]()
    for commit in ordered[1:]:
        if head.parents and commit.sha == head.parents[0]:
            yield MainlineStep(head, tuple(brought))
            head, brought = commit, []
        else:
            brought.append(commit)
    yield MainlineStep(head, tuple(brought))
