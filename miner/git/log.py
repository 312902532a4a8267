"""A repository's commits as one `git log` tells them: no process per commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from backends.git import Repository

PULLS = "refs/pull/*/head"
"""Where a mirror of a forge's repository keeps the tips of its pull requests."""

_FORMAT = "%H%x1f%P%x1f%an%x1f%ae%x1f%at%x1f%ct%x1f%S%x1f%B"
_OPTIONS = ("-z", "--encoding=UTF-8", "--no-show-signature", "--source", f"--format={_FORMAT}")


class Commit(NamedTuple):
    """One commit. `authored` and `committed` are seconds since 1970; `source` is the ref it was reached by."""

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored: str
    committed: str
    source: str
    message: str

    @property
    def when(self) -> str:
        """The day and second it was committed, ISO 8601 in UTC."""
        return datetime.fromtimestamp(int(self.committed), UTC).isoformat(timespec="seconds")

    @property
    def subject(self) -> str:
        """The message's first line."""
        return self.message.partition("\n")[0].strip()


@dataclass(frozen=True, slots=True)
class Step:
    """A commit of the first-parent line and, for a merge, the commits it brought in, newest first."""

    commit: Commit
    brought: tuple[Commit, ...]


@dataclass(frozen=True, slots=True)
class History:
    """All commits that a head reaches, and those of pull requests."""

    line: tuple[Step, ...]
    """The head's first-parent line, newest first."""
    unmerged: tuple[Commit, ...]
    """What only pull requests' refs reach, newest first."""


def read(repository: Repository, head: str) -> History:
    """The history of the commit `head` and, in the same pass, what pull requests hold beside it."""
    commits = {commit.sha: commit for commit in _commits(repository, head)}
    ordered = _children_first(commits[head], commits)
    merged = {commit.sha for commit in ordered}
    return History(tuple(_steps(ordered)), tuple(c for c in commits.values() if c.sha not in merged))


def commits_of(repository: Repository, shas: Iterable[str]) -> Iterator[Commit]:
    """These commits, each once, in no order that counts, from one `git log`. Their `source` says nothing."""
    listed = list(dict.fromkeys(shas))
    if listed:
        rows = (f"{sha}\n".encode() for sha in listed)
        yield from _read(repository.stream("log", *_OPTIONS, "--no-walk=unsorted", "--stdin", data=rows))


def _commits(repository: Repository, head: str) -> Iterator[Commit]:
    return _read(repository.stream("log", *_OPTIONS, head, f"--glob={PULLS}"))


def _read(blocks: Iterable[bytes]) -> Iterator[Commit]:
    rest = b""
    for block in blocks:
        whole, nul, rest = (rest + block).rpartition(b"\0")
        if nul:
            yield from map(_commit, whole.decode(errors="replace").split("\0"))


def _commit(row: str) -> Commit:
    sha, parents, author, email, authored, committed, source, message = row.split("\x1f", 7)
    return Commit(sha, tuple(parents.split()), author, email, authored, committed, source, message.strip())


def _children_first(head: Commit, commits: Mapping[str, Commit]) -> list[Commit]:
    """`head` and its ancestors, as `git log --topo-order` has them: a merge, what only it reaches, its first parent."""
    children = {head.sha: 0}  # how many of each commit's children are still to come
    found = [head]
    while found:
        for parent in found.pop().parents:
            if parent not in children:
                children[parent] = 0
                found.append(commits[parent])
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


def _steps(ordered: list[Commit]) -> Iterator[Step]:
    """The first-parent line, each merge with what stands between it and its first parent."""
    head, brought = ordered[0], list[Commit]()
    for commit in ordered[1:]:
        if head.parents and commit.sha == head.parents[0]:
            yield Step(head, tuple(brought))
            head, brought = commit, []
        else:
            brought.append(commit)
    yield Step(head, tuple(brought))
