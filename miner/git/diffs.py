"""Changed files of many commits from a git process: of a first-parent line, or of pairs of commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backends.git import EMPTY_TREE, GitRepository
from miner.changes import FileChange

_RAW_OPTIONS = ("-r", "-z", "--root", "--raw", "--no-abbrev", "-M", "-l400", "--ignore-submodules=none")

_NICENESS = 10
"""With two cores, reading the commits (which everything depends on) gets priority over reading their diffs."""

FileChanges = tuple[FileChange, ...]


def read_first_parent_diffs(repository: GitRepository, head: str) -> Iterator[tuple[str, FileChanges]]:
    """Yield the commits of the first-parent line of `head`, newest first, each with its changed files.

    Git starts when the function is called.
    """
    # `log` otherwise uses the order of files configured in the repository.
    order = ("-O/dev/null", "--no-relative", "--no-ext-diff")
    line = ("--first-parent", "--diff-merges=first-parent", "--no-show-signature", "--format=%H")
    return _group_by_commit(repository.stream("log", *line, *_RAW_OPTIONS, *order, head, nice=_NICENESS))


def read_raw_diffs(repository: GitRepository, pairs: Iterable[tuple[str, str]]) -> Iterator[FileChanges]:
    """Yield the changed files of each pair (commit, base), in the given order, from a single `git diff-tree --stdin`.

    A commit without parent has the empty tree as base. Git starts when the function is called.
    """
    listed = list(pairs)
    if not listed:
        return iter(())
    rows = (f"{commit} {base}\n" if base != EMPTY_TREE else f"{commit}\n" for commit, base in listed)
    changes = _group_by_commit(repository.stream("diff-tree", "--stdin", *_RAW_OPTIONS, data=map(str.encode, rows)))
    return _order_files([commit for commit, _ in listed], changes)


def _order_files(commits: Iterable[str], changes: Iterator[tuple[str, FileChanges]]) -> Iterator[FileChanges]:
    """Yield the files of each commit; none for a commit that is not found."""
    at = next(changes, None)
    for commit in commits:
        if at is None or at[0] != commit:  # git prints nothing for a commit without a difference
            yield ()
        else:
            yield at[1]
            at = next(changes, None)


def _group_by_commit(blocks: Iterable[bytes]) -> Iterator[tuple[str, FileChanges]]:
    """Group raw rows by the commit id before them."""
    commit, group = "", list[FileChange]()
    fields = _split_fields(blocks)
    for field in fields:
        row = field.lstrip("\n")  # `log` puts a newline between a commit and its rows
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


def _split_fields(blocks: Iterable[bytes]) -> Iterator[str]:
    """Yield the texts between NUL bytes."""
    rest = b""
    for block in blocks:
        whole, nul, rest = (rest + block).rpartition(b"\0")
        if nul:
            yield from whole.decode(errors="surrogateescape").split("\0")
