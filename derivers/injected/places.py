"""Where bugs are put: program files that passing tests run, those of the change first, then drawn by its id.

Drawn, so that changes which lie beside each other in a history do not all give the same bugs; by the id, so that the
same change gives the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from backends.git import Repository
from backends.testing.coverage import Covered
from derivers.mutation import Change, mutants
from languages.paths import is_source
from languages.registry import family, language_of_file
from taskdb.records import Candidate, TestId

FILES = 6
"""Files of a change that are looked into."""
LINES = 100
"""Lines of a file that are looked at, of those that tests run."""
MAX_BYTES = 200_000
"""Larger files are mostly data."""


def files(
    candidate: Candidate, tree: Repository, covered: Covered | None, passing: Iterable[TestId]
) -> dict[str, bytes]:
    """Program files of the base tree to put bugs into, best first.

    Args:
        candidate: the change.
        tree: the history that holds its base commit.
        covered: lines that tests run, by file; None where that is not known.
        passing: tests that pass; files that these are named after go before others.
    """
    languages = family(candidate.language)
    entries = {
        entry.path: entry.oid for entry in tree.ls_tree(candidate.base_commit)
        if entry.mode.startswith("100") and is_source(entry.path) and language_of_file(entry.path) in languages
        and (covered is None or covered.get(entry.path))
    }  # fmt: skip
    tested = {PurePosixPath(test.partition("::")[0]).stem.lower() for test in passing}

    def rank(path: str) -> tuple[bool, bool, str]:
        stem = PurePosixPath(path).stem.lower()
        named = any(stem in name for name in tested)
        return path not in candidate.gold_files, not named, drawn(candidate, path)

    chosen = sorted(entries, key=rank)[:FILES]
    contents = dict(zip(chosen, tree.blobs([entries[path] for path in chosen]), strict=True))
    return {path: content for path, content in contents.items() if len(content) <= MAX_BYTES}


def lines(candidate: Candidate, path: str, content: bytes, covered: Covered | None) -> set[int]:
    """Lines of a file, 1-based, of which some are changed."""
    known = covered[path] if covered is not None else range(1, content.count(b"\n") + 2)
    return set(sorted(known, key=lambda line: drawn(candidate, f"{path}:{line}"))[:LINES])


def bugs(candidate: Candidate, contents: Mapping[str, bytes], covered: Covered | None) -> list[Change]:
    """All mutants of these lines, in the order drawn."""
    found = [
        change for path, content in contents.items()
        for change in mutants(path, content, lines(candidate, path, content, covered))
    ]  # fmt: skip
    return sorted(found, key=lambda one: drawn(candidate, f"{one.path}:{one.line}:{one.operator}:{one.detail}"))


def drawn(candidate: Candidate, what: str) -> str:
    """A place in an order that is the change's own."""
    return hashlib.sha256(f"{candidate.id}:{what}".encode(errors="surrogateescape")).hexdigest()
