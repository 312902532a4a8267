"""Which files many changes touch, from one git process: of a whole first-parent line, or of any pairs of commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backends.git import EMPTY_TREE, Repository
from miner.changes import FileChange

_RAW = ("-r", "-z", "--root", "--raw", "--no-abbrev", "-M", "-l400", "--ignore-submodules=none")

_GIVES_WAY = 10
"""On two cores the commits themselves, for which everything waits, come before what they change."""

Files = tuple[FileChange, ...]


def first_parent_diffs(repository: Repository, head: str) -> Iterator[tuple[str, Files]]:
    """The commits of the first-parent line of `head`, newest first, each with the files that it changed.

    Git is at work from the call on.
    """
    # `log` would otherwise follow the order of files that a repository's configuration names.
    order = ("-O/dev/null", "--no-relative", "--no-ext-diff")
    line = ("--first-parent", "--diff-merges=first-parent", "--no-show-signature", "--format=%H")
    return _by_commit(repository.stream("log", *line, *_RAW, *order, head, nice=_GIVES_WAY))


def raw_diffs(repository: Repository, pairs: Iterable[tuple[str, str]]) -> Iterator[Files]:
    """For each pair (commit, base) the files that changed, in the order given, from one `git diff-tree --stdin`.

    A base that is the empty tree stands for none: the commit is compared with nothing. Git is at work from the call on.
    """
    asked = list(pairs)
    if not asked:
        return iter(())
    rows = (f"{commit} {base}\n" if base != EMPTY_TREE else f"{commit}\n" for commit, base in asked)
    found = _by_commit(repository.stream("diff-tree", "--stdin", *_RAW, data=map(str.encode, rows)))
    return _in_order([commit for commit, _ in asked], found)


def _in_order(commits: Iterable[str], found: Iterator[tuple[str, Files]]) -> Iterator[Files]:
    """The files of each commit; none for one that is not found."""
    at = next(found, None)
    for commit in commits:
        if at is None or at[0] != commit:  # git says nothing of a commit without a difference
            yield ()
        else:
            yield at[1]
            at = next(found, None)


def _by_commit(blocks: Iterable[bytes]) -> Iterator[tuple[str, Files]]:
    """Raw rows, grouped by the commit whose id stands before them."""
    commit, group = "", list[FileChange]()
    fields = _fields(blocks)
    for field in fields:
        row = field.lstrip("\n")  # `log` puts a line's end between a commit and its rows
        if row[0] != ":":
            if commit:
                yield commit, tuple(group)
            commit, group = row, []
            continue
        old_mode, new_mode, old_blob, new_blob, status = row.split(" ")
        old = next(fields)
        new = next(fields) if status[0] in "RC" else old
        group.append(FileChange(status[0], old_mode[1:], new_mode, old, new, f"{old_blob} {new_blob}"))
    if commit:
        yield commit, tuple(group)


def _fields(blocks: Iterable[bytes]) -> Iterator[str]:
    """The texts between NUL bytes."""
    rest = b""
    for block in blocks:
        whole, nul, rest = (rest + block).rpartition(b"\0")
        if nul:
            yield from whole.decode(errors="surrogateescape").split("\0")
