"""What changes add to changelogs, for many changes from one git process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from backends.git import EMPTY_TREE, Repository
from miner import changelog
from miner.git.diffs import Files
from miner.github.links import fragment_number

LONGEST = 60
"""Lines: more are no entry, but a changelog that was moved or written anew."""

_COMMIT = re.compile(rb"^[0-9a-f]{40}$")
_README = re.compile(r"(^|/)readme[^/]*$", re.IGNORECASE)


def entry_files(files: Files) -> tuple[str, ...]:
    """Those files of a change that hold changelog entries and are there afterwards."""
    touched = (file.new_path for file in files if file.status != "D" and file.new_mode != "160000")
    return tuple(path for path in touched if _tells(path))


def added(repository: Repository, changes: Iterable[tuple[str, str, Files]]) -> list[str]:
    """For each change (commit, base, files) the lines it adds to changelogs, or an empty text."""
    asked = [(commit, base, set(entry_files(files))) for commit, base, files in changes]
    wanted = [(commit, base) for commit, base, paths in asked if paths]
    paths = sorted({path for _, _, some in asked for path in some})
    found = _added(repository, wanted, paths) if wanted else iter(())
    return [next(found, "") if some else "" for _, _, some in asked]


def _tells(path: str) -> bool:
    return (changelog.may_tell(path) and not _README.search(path)) or fragment_number(path) is not None


def _added(repository: Repository, pairs: Sequence[tuple[str, str]], paths: Sequence[str]) -> Iterator[str]:
    rows = (f"{commit} {base}\n" if base != EMPTY_TREE else f"{commit}\n" for commit, base in pairs)
    options = ("-r", "-p", "-U0", "--root", "--no-renames", "--no-textconv", "--no-ext-diff", "--no-color")
    blocks = repository.stream(
        "--literal-pathspecs", "diff-tree", "--stdin", *options, "--", *paths, data=map(str.encode, rows)
    )
    told = _by_commit(blocks)
    at = next(told, None)
    for commit, _ in pairs:
        if at is None or at[0] != commit:
            yield ""
            continue
        yield "\n".join(at[1]) if len(at[1]) <= LONGEST else ""
        at = next(told, None)


def _by_commit(blocks: Iterable[bytes]) -> Iterator[tuple[str, list[str]]]:
    """Added lines, grouped by the commit whose id stands before them; one more than LONGEST at most."""
    commit, lines, inside = "", list[str](), False
    for line in _lines(blocks):
        if _COMMIT.match(line):
            if commit:
                yield commit, lines
            commit, lines, inside = line.decode(), [], False
        elif line.startswith(b"diff --git "):
            inside = False
        elif line.startswith(b"@@"):
            inside = True
        elif inside and line.startswith(b"+") and len(lines) <= LONGEST:
            lines.append(line[1:].decode(errors="replace"))
    if commit:
        yield commit, lines


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest
