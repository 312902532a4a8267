"""Find the tests of a candidate that are weak evidence, from its reports and the text of its test files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from backends.git import GitError, GitRepository
from backends.index import ScratchIndex
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus
from evaluation.weak_tests.assertions import asserts_nothing
from evaluation.weak_tests.skips import find_skipping_tests, group_by_file
from evaluation.weak_tests.source import ParsedFile, parse_file
from guest.reports.junit import SKIPPED_FILE
from taskdb.records import TestId, Weakness, WeakTest

MAX_FILES = 2_000
"""Test files whose text is examined, in alphabetical order."""
MAX_FILE_BYTES = 1_000_000
MOSTLY = 0.5
"""Share of a report's tests from which on its skips are named."""


@dataclass(frozen=True, kw_only=True)
class TreeSource:
    """Tree of the commit `base` with patches applied in their order."""

    repository: GitRepository
    base: str
    patches: Sequence[bytes]


def find_weak_tests(
    tests: Collection[TestId],
    gold: Sequence[EvaluationReport],
    tree: TreeSource,
    *,
    changed_files: Collection[str],
) -> tuple[WeakTest, ...]:
    """Return the weak tests of a candidate, sorted by test.

    Args:
        tests: tests of the lists.
        gold: reports of the gold runs.
        tree: the tree of the gold runs.
        changed_files: files of the test patch.
    """
    weak_tests = [
        *_find_repeated(tests, gold),
        *_find_skipped(gold, changed_files),
        *_find_in_sources(tests, tree),
    ]
    return tuple(sorted(weak_tests, key=lambda weak: (weak.test, weak.weakness)))


def describe_skips(report: EvaluationReport) -> str:
    """Return how many tests of a report are skipped, and the most frequent reason; empty where most are not."""
    reasons = Counter(
        outcome.message or "no reason"
        for outcome in report.outcomes.values()
        if outcome.status is OutcomeStatus.SKIPPED
    )
    skipped_files = [reason for reason in report.uncollected.values() if reason.startswith(SKIPPED_FILE)]
    n_skipped, total = reasons.total() + len(skipped_files), len(report.outcomes) + len(skipped_files)
    if not n_skipped or n_skipped < MOSTLY * total:
        return ""
    reasons.update(skipped_files)
    reason, number = min(reasons.items(), key=lambda item: (-item[1], item[0]))
    return f"{n_skipped} of {total} tests and files are skipped, {number} of them for: {reason}"


def _find_repeated(tests: Collection[TestId], gold: Sequence[EvaluationReport]) -> Iterator[WeakTest]:
    for test in tests:
        rows = max((len(report.repeated.get(test, ())) for report in gold), default=0)
        if rows:
            yield WeakTest(test=test, weakness=Weakness.REPEATED, evidence=f"{rows} rows in the report of a gold run")


def _find_skipped(gold: Sequence[EvaluationReport], files: Collection[str]) -> Iterator[WeakTest]:
    for test, outcome in gold[0].outcomes.items() if gold else ():
        outcomes = [report.outcomes.get(test) for report in gold]
        if test.partition("::")[0] in files and all(
            other is not None and other.status is OutcomeStatus.SKIPPED for other in outcomes
        ):
            yield WeakTest(test=test, weakness=Weakness.SKIPPED, evidence=outcome.message or "no reason is reported")
    for file, reason in gold[0].uncollected.items() if gold else ():
        if file in files and reason.startswith(SKIPPED_FILE):
            yield WeakTest(test=file, weakness=Weakness.SKIPPED, evidence=reason)


def _find_in_sources(tests: Collection[TestId], tree: TreeSource) -> Iterator[WeakTest]:
    try:
        with ScratchIndex(tree.repository, tree.base) as index:
            for patch in tree.patches:
                index.apply(patch)
            paths = index.run_git("ls-files", "-z").decode(errors="surrogateescape").split("\0")[:-1]

            @cache
            def read(path: str) -> ParsedFile | None:
                content = index.read_file(path)
                return parse_file(path, content) if content is not None and len(content) <= MAX_FILE_BYTES else None

            for path, listed in sorted(group_by_file(tests).items())[:MAX_FILES]:
                if (file := read(path)) is not None:
                    yield from _examine(file, listed, asserts_nothing(file, paths, read))
    except GitError:
        # Patches that git cannot apply outside of the container have been applied in it.
        return


def _examine(file: ParsedFile, tests: Sequence[TestId], is_vacuous: bool) -> Iterator[WeakTest]:
    for test, quote in find_skipping_tests(file, tests).items():
        yield WeakTest(test=test, weakness=Weakness.SKIPS, evidence=quote)
    if is_vacuous:
        for test in tests:
            evidence = f"{file.path}: no assertion in the file, or in a helper that it names"
            yield WeakTest(test=test, weakness=Weakness.ASSERTS_NOTHING, evidence=evidence)
