"""Selection of removals: code of the base tree that is written by hand and reached by tests, in an order of the change.

The order is pseudo-random by the change's id and goes round the files, so that tasks of an environment spread over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from backends.git import GitRepository, TreeEntry
from derivers.injected.bug_sites import MAX_FILE_BYTES, hash_for_order
from derivers.rebuild.removals import RemovableFile, Removal, count_words
from evaluation.reports.coverage import CoveredLines
from languages.generated import has_generated_header, has_generated_path
from languages.paths import is_source
from languages.registry import detect_file_language, language_family
from taskdb.records import Candidate

MAX_FILES = 60
"""Source files from which removals are selected."""
MAX_SEARCHED_BYTES = 1024 * 1024
"""Larger files are not searched for the names of functions."""
_BATCH_SIZE = 500


def select_removals(
    candidate: Candidate, repository: GitRepository, covered: CoveredLines | None, test_files: Iterable[str]
) -> list[Removal]:
    """Return the removals to try, in order.

    Where no lines are collected, those come first whose names occur in a test file.

    Args:
        candidate: the change, of which only the base commit counts.
        repository: repository that contains its base commit.
        covered: lines that tests execute, by file; None where unknown.
        test_files: files that contain only tests.
    """
    entries = [entry for entry in repository.ls_tree(candidate.base_commit) if entry.mode.startswith("100")]
    files = _read_files(candidate, repository, entries, covered)
    names = frozenset(chain.from_iterable(file.names for file in files))
    tests = frozenset(test_files)
    in_tests = _count_names(repository, [entry for entry in entries if entry.path in tests], names)
    n_uses = in_tests + _count_names(repository, [entry for entry in entries if entry.path not in tests], names)

    def rank(removal: Removal) -> tuple[bool, str]:
        is_named = any(function.last_name.encode() in in_tests for function in removal.functions)
        is_unlikely = covered is None and not is_named
        return is_unlikely, hash_for_order(candidate, f"{removal.path}:{removal.level}:{removal.name}")

    rows = [
        sorted((item for item in file.list_removals(n_uses) if _is_reached(item, covered)), key=rank) for file in files
    ]
    ordered = [removal for column in zip_longest(*rows) for removal in column if removal is not None]
    return sorted(ordered, key=lambda removal: rank(removal)[0])


def _read_files(
    candidate: Candidate, repository: GitRepository, entries: Sequence[TreeEntry], covered: CoveredLines | None
) -> list[RemovableFile]:
    """Return the source files with functions that can be removed, in the order of the change."""
    languages = language_family(candidate.language)
    sources = {
        entry.path: entry.oid
        for entry in entries
        if is_source(entry.path)
        and detect_file_language(entry.path) in languages
        and entry.size <= MAX_FILE_BYTES
        and not has_generated_path(entry.path)
        and (covered is None or covered.get(entry.path))
    }
    chosen = sorted(sources, key=lambda path: hash_for_order(candidate, path))[:MAX_FILES]
    contents = zip(chosen, repository.read_blobs([sources[path] for path in chosen]), strict=True)
    parsed = (RemovableFile.parse(path, text) for path, text in contents if not has_generated_header(text))
    return [file for file in parsed if file is not None and file.functions]


def _count_names(repository: GitRepository, entries: Sequence[TreeEntry], names: frozenset[bytes]) -> Counter[bytes]:
    """Return how often names occur in some files of a tree."""
    counts: Counter[bytes] = Counter()
    small = [entry.oid for entry in entries if entry.size <= MAX_SEARCHED_BYTES]
    for at in range(0, len(small), _BATCH_SIZE):
        for content in repository.read_blobs(small[at : at + _BATCH_SIZE]):
            counts.update({word: number for word, number in count_words(content).items() if word in names})
    return counts


def _is_reached(removal: Removal, covered: CoveredLines | None) -> bool:
    """Return whether tests execute a line of a function that is removed."""
    if covered is None:
        return True
    lines = covered.get(removal.path, frozenset())
    return any(line in lines for function in removal.functions for line in function.lines)
