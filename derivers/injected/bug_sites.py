"""Files and lines into which bugs are injected: source files that passing tests execute, those of the change first.

The order is pseudo-random, by the change's id: changes of a history give different bugs, and the same change always
gives the same bugs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import PurePosixPath

from backends.git import GitRepository
from evaluation.reports.coverage import CoveredLines
from languages.generated import has_generated_header, has_generated_path
from languages.paths import is_source
from languages.registry import detect_file_language, language_family
from mutation import Mutation, generate_mutants, select_diverse
from mutation.definitions import CodeDefinition, find_innermost, list_definitions
from taskdb.records import Candidate, TestId

MAX_FILES = 6
"""Files into which bugs of a change are injected."""
MAX_LINES_PER_FILE = 100
"""Covered lines of a file that are mutated."""
MAX_FILE_BYTES = 200_000
"""Larger files are mostly data."""


MUTANTS_PER_TASK = 40
"""Mutants that are kept for each task of an environment. Each holds the text of its file."""
MIN_MUTANTS_PER_FILE = 60
"""Mutants of a file that are kept at least."""


@dataclass(frozen=True)
class SiteLimits:
    """Numbers of files, of lines in each, and of mutants of all files; None for all."""

    files: int = MAX_FILES
    lines: int = MAX_LINES_PER_FILE
    mutants: int | None = None

    @classmethod
    def for_tasks(cls, number: int) -> SiteLimits:
        """Return the limits for a number of tasks of the same environment: they grow with it."""
        return cls(
            files=max(MAX_FILES, number),
            lines=MAX_LINES_PER_FILE * (1 + number // 5),
            mutants=MUTANTS_PER_TASK * number,
        )


DEFAULT_LIMITS = SiteLimits()


class FunctionMap:
    """Functions and types of some files, by their lines. `contents`: path -> content."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self._definitions: dict[str, list[CodeDefinition]] = {}

    def find(self, path: str, line: int) -> CodeDefinition | None:
        """Return the innermost definition around a line (1-based) of a file; None where there is none."""
        if path not in self._definitions:
            self._definitions[path] = list(list_definitions(path, self._contents[path]).values())
        return find_innermost(self._definitions[path], line)

    def find_name(self, path: str, line: int) -> str:
        """Return the qualified name of the innermost definition around a line; empty for none."""
        definition = self.find(path, line)
        return definition.name if definition else ""


def select_files(
    candidate: Candidate,
    repository: GitRepository,
    covered: CoveredLines | None,
    passing: Iterable[TestId],
    limits: SiteLimits = DEFAULT_LIMITS,
) -> dict[str, bytes]:
    """Return the source files of the base tree to inject bugs into, in order of preference; none that is generated.

    Args:
        candidate: the change.
        repository: repository that contains its base commit.
        covered: lines that tests execute, by file; None where unknown.
        passing: tests that pass; files that their names mention precede others.
        limits: number of files.
    """
    languages = language_family(candidate.language)
    entries = {
        entry.path: entry.oid
        for entry in repository.ls_tree(candidate.base_commit)
        if entry.mode.startswith("100")
        and is_source(entry.path)
        and not has_generated_path(entry.path)
        and detect_file_language(entry.path) in languages
        and (covered is None or covered.get(entry.path))
    }
    test_stems = {PurePosixPath(test.partition("::")[0]).stem.lower() for test in passing}

    def rank(path: str) -> tuple[bool, bool, str]:
        stem = PurePosixPath(path).stem.lower()
        is_tested = any(stem in test_stem for test_stem in test_stems)
        return path not in candidate.gold_files, not is_tested, hash_for_order(candidate, path)

    ordered, contents = iter(sorted(entries, key=rank)), dict[str, bytes]()
    # Files that are too large or generated, which their content shows, leave their places to the next ones.
    while chosen := list(islice(ordered, limits.files - len(contents))):
        blobs = repository.read_blobs([entries[path] for path in chosen])
        for path, content in zip(chosen, blobs, strict=True):
            if len(content) <= MAX_FILE_BYTES and not has_generated_header(content):
                contents[path] = content
    return contents


def select_lines(
    candidate: Candidate,
    path: str,
    content: bytes,
    covered: CoveredLines | None,
    limits: SiteLimits = DEFAULT_LIMITS,
) -> set[int]:
    """Return the lines of a file (1-based) that may be mutated."""
    lines = covered[path] if covered is not None else range(1, content.count(b"\n") + 2)
    return set(sorted(lines, key=lambda line: hash_for_order(candidate, f"{path}:{line}"))[: limits.lines])


def list_functions(
    candidate: Candidate, contents: Mapping[str, bytes], covered: CoveredLines | None, functions: FunctionMap
) -> Iterator[tuple[str, CodeDefinition]]:
    """Yield the functions whose bodies tests execute, one of each file in turn, in the order of the change.

    Args:
        candidate: the change.
        contents: path -> content of files.
        covered: lines that tests execute, by file; None where unknown.
        functions: functions of these files.
    """
    by_file = []
    for path, content in contents.items():
        lines = covered[path] if covered is not None else range(1, content.count(b"\n") + 2)
        definitions = {part for line in lines if (part := functions.find(path, line)) and line > part.first_line}
        ordered = sorted(definitions, key=lambda part: hash_for_order(candidate, f"{path}:{part.name}"))
        by_file.append([(path, definition) for definition in ordered])
    for row in zip_longest(*by_file):
        yield from (site for site in row if site is not None)


def list_mutants(
    candidate: Candidate,
    contents: Mapping[str, bytes],
    covered: CoveredLines | None,
    limits: SiteLimits = DEFAULT_LIMITS,
) -> list[Mutation]:
    """Return the mutants of the selected lines, in the order of the change.

    Where there are more than the limit, each file has an equal share, of different operators and lines.
    """

    def rank(mutant: Mutation) -> str:
        return hash_for_order(candidate, f"{mutant.path}:{mutant.line}:{mutant.operator}:{mutant.detail}")

    mutants: list[Mutation] = []
    for path, content in contents.items():
        lines = select_lines(candidate, path, content, covered, limits)
        own = sorted(generate_mutants(path, content, lines), key=rank)
        share = len(own) if limits.mutants is None else max(MIN_MUTANTS_PER_FILE, limits.mutants // len(contents))
        mutants += own if len(own) <= share else select_diverse(own, share)
    return sorted(mutants, key=rank)


def hash_for_order(candidate: Candidate, item: str) -> str:
    """Return the sort key of an item: pseudo-random, and different for each change."""
    return hashlib.sha256(f"{candidate.id}:{item}".encode(errors="surrogateescape")).hexdigest()
