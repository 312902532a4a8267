"""Lines that changes add to changelogs, for many changes from a git process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from backends.git import EMPTY_TREE, GitRepository
from miner import changelog
from miner.git.diffs import FileChanges
from miner.github.links import parse_fragment_number

MAX_LINES = 60
"""Most lines of an entry; more lines are a changelog that was moved or rewritten."""

_COMMIT_ID = re.compile(rb"^[0-9a-f]{40}$")
_README = re.compile(r"(^|/)readme[^/]*$", re.IGNORECASE)


def select_changelog_files(files: FileChanges) -> tuple[str, ...]:
    """Return those files of a change that hold changelog entries and exist after it."""
    touched = (file.new_path for file in files if file.status != "D" and file.new_mode != "160000")
    return tuple(path for path in touched if _is_entry_path(path))


def read_added_lines(repository: GitRepository, changes: Iterable[tuple[str, str, FileChanges]]) -> list[str]:
    """Return the lines that each change (commit, base, files) adds to changelogs; an empty text for none."""
    requests = [(commit, base, set(select_changelog_files(files))) for commit, base, files in changes]
    wanted = [(commit, base) for commit, base, paths in requests if paths]
    paths = sorted({path for _, _, some in requests for path in some})
    lines = _read_added(repository, wanted, paths) if wanted else iter(())
    return [next(lines, "") if some else "" for _, _, some in requests]


def _is_entry_path(path: str) -> bool:
    return (changelog.is_changelog_path(path) and not _README.search(path)) or parse_fragment_number(path) is not None


def _read_added(repository: GitRepository, pairs: Sequence[tuple[str, str]], paths: Sequence[str]) -> Iterator[str]:
    rows = (f"{commit} {base}\n" if base != EMPTY_TREE else f"{commit}\n" for commit, base in pairs)
    options = ("-r", "-p", "-U0", "--root", "--no-renames", "--no-textconv", "--no-ext-diff", "--no-color")
    blocks = repository.stream(
        "--literal-pathspecs", "diff-tree", "--stdin", *options, "--", *paths, data=map(str.encode, rows)
    )
    groups = _group_lines_by_commit(blocks)
    at = next(groups, None)
    for commit, _ in pairs:
        if at is None or at[0] != commit:
            yield ""
            continue
        yield "\n".join(at[1]) if len(at[1]) <= MAX_LINES else ""
        at = next(groups, None)


def _group_lines_by_commit(blocks: Iterable[bytes]) -> Iterator[tuple[str, list[str]]]:
    """Group added lines by the commit id before them; at most MAX_LINES and one more."""
    commit, lines, inside = "", list[str](), False
    for line in _split_lines(blocks):
        if _COMMIT_ID.match(line):
            if commit:
                yield commit, lines
            commit, lines, inside = line.decode(), [], False
        elif line.startswith(b"diff --git "):
            inside = False
        elif line.startswith(b"@@"):
            inside = True
        elif inside and line.startswith(b"+") and len(lines) <= MAX_LINES:
            lines.append(line[1:].decode(errors="replace"))
    if commit:
        yield commit, lines


def _split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest
