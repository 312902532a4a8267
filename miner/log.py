"""A repository's commits as `git log` tells them, in one stream: no process per commit, nothing kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from backends.git import Repository

_FORMAT = "%H%x1f%P%x1f%an%x1f%ae%x1f%at%x1f%ct%x1f%S%x1f%B"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `authored` and `committed` are seconds since 1970; `source` is the ref it was reached by."""

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored: int
    committed: int
    source: str
    message: str

    @property
    def when(self) -> str:
        """The day and second it was committed, ISO 8601 in UTC."""
        return datetime.fromtimestamp(self.committed, UTC).isoformat(timespec="seconds")

    @property
    def subject(self) -> str:
        """The message's first line."""
        return self.message.partition("\n")[0].strip()


@dataclass(frozen=True, slots=True)
class Step:
    """A commit of the first-parent line and, for a merge, the commits it brought in, newest first."""

    commit: Commit
    brought: tuple[Commit, ...]


def commits(repository: Repository, *options: str, revisions: Iterable[str] = ()) -> Iterator[Commit]:
    """Commits by `git log` with `options`; more revisions than a command line holds go through `revisions`."""
    data = [f"{revision}\n".encode() for revision in revisions]
    stdin = ("--stdin",) if data else ()
    arguments = (
        "log",
        "-z",
        "--encoding=UTF-8",
        "--no-show-signature",
        "--source",
        f"--format={_FORMAT}",
        *options,
        *stdin,
    )
    rest = b""
    for block in repository.stream(*arguments, data=data):
        *rows, rest = (rest + block).split(b"\0")
        yield from map(_commit, rows)
    if rest:
        yield _commit(rest)


def first_parent_line(repository: Repository) -> Iterator[Step]:
    """The first-parent line of HEAD, newest first, each merge with what it brought in.

    In `--topo-order` git shows a merge, then everything that only the merge reaches, then the merge's first parent:
    so one pass over one log is enough.
    """
    head: Commit | None = None
    brought: list[Commit] = []
    for commit in commits(repository, "--topo-order", "HEAD"):
        if head is None:
            head = commit
        elif head.parents and commit.sha == head.parents[0]:
            yield Step(head, tuple(brought))
            head, brought = commit, []
        else:
            brought.append(commit)
    if head is not None:
        yield Step(head, tuple(brought))


def _commit(row: bytes) -> Commit:
    sha, parents, author, email, authored, committed, source, message = (
        row.decode(errors="replace").replace("\0", "").split("\x1f", 7)
    )
    return Commit(
        sha.strip(), tuple(parents.split()), author, email, int(authored), int(committed), source, message.strip()
    )
