"""Confirming tests of which no instances can stand side by side: registered tests, and tests that share a state.

Such a test stands once, and a coin decides in each evaluation whether it is real. Several forms are confirmed in a
single run. In each run some of the tests are sabotaged and the others real; a test is sabotaged in half of the runs of
a round, each in another half, so that the runs in which a test failed show which form failed it, and that this form
fails nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count, islice
from math import comb
from typing import Any

from evaluation.controls.blocks import TestBlock, TestFile
from evaluation.controls.odds import SHOWN_ODDS
from evaluation.controls.sites import Site
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus
from guest.controls import blind
from guest.controls.texts import apply_edits
from taskdb.records import TestId

MAX_ROUNDS = 3
"""Rounds of forms, while a test has none."""

RunFiles = Callable[[Sequence[Mapping[str, bytes]]], Sequence[EvaluationReport | None]]
"""Runs the gold patch with some contents of the test files, and with others; returns the report of each run."""


@dataclass(kw_only=True)
class SingleTest:
    """A block, its sites, and the forms that were confirmed: edits, and test -> how it fails.

    Inputs of the tested code are no sites of such a test: whether an assertion sees them shows only beside an instance
    with its assertions switched off.
    """

    file: TestFile
    block: TestBlock
    sites: Sequence[Site]
    forms: list[tuple[Site, dict[str, Any]]] = field(default_factory=list)
    was_tried: bool = False

    @property
    def path(self) -> str:
        """Path of its file."""
        return self.file.path

    def describe(self, required: Collection[TestId], listed: Collection[TestId]) -> dict[str, Any]:
        """Return the block of a document.

        Args:
            required: the tests to control that no other block has.
            listed: the tests of the task, which may be fewer than those that forms were seen to fail.
        """
        own = [(site, {t: kind for t, kind in form["fails"].items() if t in listed}, form) for site, form in self.forms]
        forms = [(site, {**form, "fails": fails}) for site, fails, form in own if fails]
        # A form whose text the agent's tree contains could be recognised by it.
        if unknown := [form for form in forms if not form[0].is_known]:
            forms = unknown
        if strict := [form for form in forms if not form[0].is_inverted]:
            forms = strict
        odds = {"odds": SHOWN_ODDS} if any(site.is_inverted for site, _ in forms) else {}
        return {
            "file": self.path,
            "span": [self.block.start, self.block.end],
            "name": None,
            "blind": bool(unknown),
            "required": any(test in required for _, form in forms for test in form["fails"]),
            "forms": [form for _, form in forms],
            **odds,
        }


def confirm_single_tests(
    singles: Sequence[SingleTest], run: RunFiles, files: Mapping[str, bytes], listed: Collection[TestId]
) -> None:
    """Add to tests the forms that gold fails by an assertion, if nothing else fails with them; each is tried once.

    Args:
        singles: the tests.
        run: function that runs the gold patch.
        files: path -> content of the test files.
        listed: the tests of the task.
    """
    tests = [test for test in listed if test.partition("::")[0] in files]
    edits = {
        id(single): [(site, text) for site in single.sites if not site.is_input for text in site.texts[:1]]
        for single in singles
        if not single.was_tried
    }
    for _ in range(MAX_ROUNDS):
        active = [single for single in singles if edits.get(id(single)) and not single.forms]
        if not active:
            break
        _confirm_round([(single, *edits[id(single)].pop(0)) for single in active], run, files, tests)
    for single in singles:
        single.was_tried = True


def _confirm_round(
    trials: Sequence[tuple[SingleTest, Site, str]],
    run: RunFiles,
    files: Mapping[str, bytes],
    tests: Sequence[TestId],
) -> None:
    """Run a form of each test, and keep those that fail their own tests alone."""
    length, words = assign_words(len(trials))
    batch: list[dict[str, bytes]] = []
    for number in range(length):
        edits: dict[str, list[Any]] = {path: [] for path in files}
        for (single, site, text), word in zip(trials, words, strict=True):
            edits[single.path] += [[start, end, text] for start, end in site.spans if number in word]
        batch.append({path: apply_edits(content, edits[path]) for path, content in files.items()})
    reports = run(batch)
    failed = {test: _list_failures(test, reports) for test in tests}
    for (single, site, text), word in zip(trials, words, strict=True):
        own = {test: set(kinds.values()) for test, kinds in failed.items() if kinds.keys() == word}
        is_mixed = any(word < kinds.keys() for kinds in failed.values())
        # A test that fails in different ways could not be compared with its expected failure.
        wanted = list_seen_failures(single.file, site)
        if own and not is_mixed and all(len(kinds) == 1 and kinds.issubset(wanted) for kinds in own.values()):
            fails = {test: kinds.pop() for test, kinds in sorted(own.items())}
            form = {"edits": [[start, end, text] for start, end in site.spans], "fails": fails}
            single.forms.append((site, form))


def list_seen_failures(file: TestFile, site: Site) -> Collection[str]:
    """Return the kinds of failures that show that an assertion has seen another value."""
    is_named = file.sites.names_assertions and not site.is_exception
    return ("assertion",) if is_named else ("assertion", OutcomeStatus.FAILED.value)


def _list_failures(test: TestId, reports: Sequence[EvaluationReport | None]) -> dict[int, str]:
    """Return number of the run -> how the test failed there, `missing` where it left no result."""
    failures = {}
    for number, report in enumerate(reports):
        outcome = report.outcomes.get(test) if report else None
        if outcome is None:
            failures[number] = "missing"
        elif outcome.status != "passed":
            failures[number] = blind.classify_failure(outcome.status.value, outcome.message)
    return failures


def assign_words(number: int) -> tuple[int, list[frozenset[int]]]:
    """Return a number of runs, and for each form the runs that use it, so that no form's runs contain another's.

    The words of half the length are the most that have this property (Sperner's theorem).
    """
    length = next(length for length in count(1) if comb(length, (length + 1) // 2) >= number)
    words = combinations(range(length), (length + 1) // 2)
    return length, [frozenset(word) for word in islice(words, number)]
