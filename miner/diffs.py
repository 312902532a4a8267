"""Which files many changes touch, from one `git diff-tree --stdin`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backends.git import EMPTY_TREE, Repository
from miner.changes import FileChange


def raw_diffs(repository: Repository, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[FileChange, ...]]:
    """For each pair (commit, base) the files that changed, in the order given, from one `git diff-tree --stdin`.

    A base that is the empty tree stands for none: the commit is compared with nothing.
    """
    asked = list(pairs)
    rows = (f"{commit} {base}\n" if base != EMPTY_TREE else f"{commit}\n" for commit, base in asked)
    blocks = repository.stream(
        "diff-tree",
        "--stdin",
        "-r",
        "-z",
        "--root",
        "--raw",
        "--no-abbrev",
        "-M",
        "-l400",
        "--ignore-submodules=none",
        data=map(str.encode, rows),
    )
    return _by_commit(_fields(blocks), [commit.encode() for commit, _ in asked])


def _fields(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The parts between NUL bytes."""
    rest = b""
    for block in blocks:
        *parts, rest = (rest + block).split(b"\0")
        yield from parts


def _by_commit(fields: Iterator[bytes], asked: list[bytes]) -> Iterator[tuple[FileChange, ...]]:
    """Parsed rows, grouped by commit; one without a difference shows nothing at all and gives an empty group."""
    group: list[FileChange] = []
    at = -1
    for part in fields:
        if part.startswith(b":"):
            status = part[-4:].rpartition(b" ")[2][:1]
            old = next(fields).decode(errors="surrogateescape")
            new = next(fields).decode(errors="surrogateescape") if status in b"RC" else old
            row = part.decode()
            group.append(FileChange(status.decode(), row[1:7], row[8:14], old, new, row[15:96]))
            continue
        if at >= 0:
            yield tuple(group)
            group = []
        at += 1
        while asked[at] != part:
            yield ()
            at += 1
    if at >= 0:
        yield tuple(group)
    for _ in asked[at + 1 :]:
        yield ()
