"""Making and confirming blind controls: runs with the gold patch show which tests each form of sabotage fails.

Several forms are confirmed in a single run. In each run some of the tests are sabotaged and the others real; a test is
sabotaged in half of the runs of a round, each in another half, so that the runs in which a test failed show which form
failed it, and that this form fails nothing else.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count, islice
from math import comb
from random import Random
from typing import Any

from backends.git import GitError, GitRepository, list_patch_paths
from backends.index import ScratchIndex
from evaluation.controls import NO_CONTROLS
from evaluation.controls.blocks import TestBlock, TestFile, find_blocks, parse_test_file
from evaluation.controls.forms import FormEdit, list_edits
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from guest.controls import blind
from languages.paths import is_protected
from taskdb.artifacts import Artifacts
from taskdb.records import RunVariant, TestId

FORMS = 3
"""Forms that are looked for in each test."""
BOUND = 1 / 1000
"""Wanted probability of passing for a submission that cannot distinguish real from sabotaged tests."""
MAX_EVALUATIONS = 12
GRADING_SECONDS = 1800.0
"""Time that the evaluations of a grading may take; slower tests get fewer, and a higher bound."""
MAX_COPIES = 6
MAX_OTHER_BLOCKS = 8
"""Tests outside of FAIL_TO_PASS that are sabotaged as well, a sample."""
MAX_BLOCKS = 70
MAX_SINGLE_RUNS = 8
"""Runs of a form alone, where a run of several left no report."""
CONFIRMATION_SECONDS = 300.0
"""After this time no further round of forms is begun."""


@dataclass(frozen=True, kw_only=True)
class BlindControls:
    """Confirmed controls of a task; `document` is None where there are none (see `guest.controls.blind`)."""

    document: dict[str, Any] | None = None
    confirmed: tuple[TestId, ...] = ()
    """Listed tests, of those to control, that a form fails."""
    runs: tuple[EvaluationRun, ...] = ()

    def make_fields(self, artifacts: Artifacts) -> dict[str, Any]:
        """Return the fields of a verification or task that describe its controls; the document is stored."""
        if self.document is None:
            return dict(NO_CONTROLS)
        content = json.dumps(self.document, sort_keys=True).encode()
        return {
            **NO_CONTROLS,
            "blind_controls": artifacts.put(content),
            "control_bound": blind.compute_bound(self.document),
            "evaluations": self.document["evaluations"],
            "controls": self.confirmed,
        }


@dataclass(kw_only=True)
class _Candidate:
    """A block with the edits that are still to be tried and the forms that were confirmed."""

    file: TestFile
    block: TestBlock
    edits: list[FormEdit]
    forms: list[tuple[FormEdit, dict[TestId, str]]] = field(default_factory=list)


@dataclass(kw_only=True)
class ControlBuilder:
    """Makes the controls of a task.

    Args:
        evaluator: its image holds the tree of the base commit.
        gold_patch: the patch with which all listed tests pass.
        required: tests to control, FAIL_TO_PASS as a rule.
        others: further listed tests, which a form may fail only along with a required test, or as part of the sample.
        test_files: path -> content of the tests' files in every evaluation.
        old_files: path -> content of those that the agent's tree contains.
        random: random that chooses among equally good forms.
        seconds: duration of a run of all tests.
    """

    evaluator: Evaluator
    gold_patch: bytes
    required: frozenset[TestId]
    others: frozenset[TestId]
    test_files: Mapping[str, bytes]
    old_files: Mapping[str, bytes]
    random: Random
    seconds: float = 0.0
    runs: list[EvaluationRun] = field(default_factory=list)

    def build(self) -> BlindControls:
        """Return the controls that the gold patch was seen to fail, and to pass when they are real."""
        candidates = self._select_candidates()
        self._confirm(candidates)
        confirmed = [candidate for candidate in candidates if candidate.forms]
        document = self._choose_document(confirmed)
        if document is None:
            return BlindControls(runs=tuple(self.runs))
        failed = {test for block in document["blocks"] for form in block["forms"] for test in form["fails"]}
        return BlindControls(document=document, confirmed=tuple(sorted(failed & self.required)), runs=tuple(self.runs))

    # ---------------------------------------------------------------------------------------------------- candidates

    def _select_candidates(self) -> list[_Candidate]:
        """Return the tests of the files that required tests may be, and a sample of the others."""
        likely: list[_Candidate] = []
        other: list[_Candidate] = []
        for path, content in self.test_files.items():
            file = parse_test_file(path, content)
            if file is None:
                continue
            old_lines = frozenset(line.strip() for line in self.old_files.get(path, b"").splitlines())
            ids = [test.partition("::")[2] for test in self.required if test.partition("::")[0] == path]
            for block in find_blocks(file):
                edits = list_edits(file, block, old_lines, self.random)
                if edits:
                    name = content[slice(*block.name_span)].decode() if block.name_span else ""
                    (likely if any(name in test for test in ids) else other).append(
                        _Candidate(file=file, block=block, edits=edits)
                    )
        # A sample of the others is controlled, too, so that a submission cannot rely on which tests are.
        self.random.shuffle(other)
        return [*likely[: MAX_BLOCKS - MAX_OTHER_BLOCKS], *other[:MAX_OTHER_BLOCKS]]

    # ---------------------------------------------------------------------------------------------------- confirming

    def _confirm(self, candidates: Sequence[_Candidate]) -> None:
        """Confirm up to FORMS forms of each candidate, a form of each in a round."""
        singles = 0
        for number in count():
            active = [candidate for candidate in candidates if candidate.edits and len(candidate.forms) < FORMS]
            # Further rounds are only for tests without any form.
            if number >= FORMS:
                active = [candidate for candidate in active if not candidate.forms]
            if not active or number >= 2 * FORMS or (number and self._spent > CONFIRMATION_SECONDS):
                return
            trials = [(candidate, candidate.edits.pop(0)) for candidate in active]
            # Forms that hide each other are tried apart, a few at most: each costs a run of its own.
            for trial in self._confirm_round(trials):
                if singles < MAX_SINGLE_RUNS and len(trials) > 1:
                    singles += 1
                    self._confirm_round([trial])

    @property
    def _spent(self) -> float:
        return sum(run.record.seconds for run in self.runs)

    def _confirm_round(self, trials: Sequence[tuple[_Candidate, FormEdit]]) -> list[tuple[_Candidate, FormEdit]]:
        """Run a form of each candidate, and keep those that fail their own tests alone.

        Returns:
            The forms about which nothing is known, as another form left no report of their tests.
        """
        length, words = assign_words(len(trials))
        reports: list[EvaluationReport | None] = []
        for number in range(length):
            chosen = [trial for trial, word in zip(trials, words, strict=True) if number in word]
            reports.append(self._run_forms([(candidate.file.path, edit) for candidate, edit in chosen]))
        tests = [test for test in (*self.required, *self.others) if test.partition("::")[0] in self.test_files]
        failed = {test: self._list_failures(test, reports) for test in tests}
        unknown = []
        for (candidate, edit), word in zip(trials, words, strict=True):
            own = {test: kinds for test, kinds in failed.items() if kinds.keys() == word}
            mixed = [test for test, kinds in failed.items() if word <= kinds.keys() and test not in own]
            kinds_found = {test: set(kinds.values()) for test, kinds in own.items()}
            # A test that fails in different ways could not be compared with its expected failure.
            is_clear = all(len(kinds) == 1 and "missing" not in kinds for kinds in kinds_found.values())
            if own and not mixed and is_clear:
                fails = {test: kinds.pop() for test, kinds in sorted(kinds_found.items())}
                # With another input the failure depends on the solution, so any failure is accepted.
                candidate.forms.append((edit, dict.fromkeys(fails, blind.ANY_FAILURE) if edit.is_input else fails))
            elif mixed and len(trials) > 1:
                unknown.append((candidate, edit))
        return unknown

    def _list_failures(self, test: TestId, reports: Sequence[EvaluationReport | None]) -> dict[int, str]:
        """Return number of the run -> how the test failed there, `missing` where it left no result."""
        failures = {}
        for number, report in enumerate(reports):
            outcome = report.outcomes.get(test) if report else None
            if outcome is None:
                failures[number] = "missing"
            elif outcome.status != "passed":
                failures[number] = blind.classify_failure(outcome.status.value, outcome.message)
        return failures

    def _run_forms(self, edits: Sequence[tuple[str, FormEdit]]) -> EvaluationReport | None:
        files = {
            path: blind.apply_edits(content, [[e.start, e.end, e.text] for other, e in edits if other == path])
            for path, content in self.test_files.items()
        }
        return self._run(files, sorted(files)).result.report

    def _run(self, test_files: Mapping[str, bytes], files: Sequence[str] = ()) -> EvaluationRun:
        run = self.evaluator.run(RunVariant.CONTROL, patch=self.gold_patch, test_files=test_files, files=files)
        self.runs.append(run)
        return run

    # ------------------------------------------------------------------------------------------------------ document

    def _choose_document(self, candidates: Sequence[_Candidate]) -> dict[str, Any] | None:
        """Return the document with the fewest evaluations that reaches the bound and that the gold patch passes."""
        blocks = [self._describe_block(candidate) for candidate in candidates]
        document, broken = self._try_plan(blocks, can_copy=True)
        # Tests that compare their own file, or count tests, fail because of copies alone.
        if document is not None and broken is not None and document["copies"]:
            document, broken = self._try_plan(blocks, can_copy=False)
        if document is not None and broken is not None:
            unbroken = [block for block in blocks if not broken & _list_tests(block)]
            document, broken = self._try_plan(unbroken, can_copy=False)
        return document if broken is None else None

    def _try_plan(
        self, blocks: Sequence[dict[str, Any]], *, can_copy: bool
    ) -> tuple[dict[str, Any] | None, set[TestId] | None]:
        """Return a document and the result that `_grade_gold` returns for it.

        No document where no required test is left.
        """
        if not any(block["required"] for block in blocks):
            return None, None
        document = plan_evaluations(self.test_files, blocks, can_copy=can_copy, seconds=self.seconds)
        return document, self._grade_gold(document)

    def _describe_block(self, candidate: _Candidate) -> dict[str, Any]:
        file, block = candidate.file, candidate.block
        line = file.source.rfind(b"\n", 0, block.start) + 1
        begins_line = not file.source[line : block.start].strip()
        forms = candidate.forms
        # A form whose text the agent's tree contains could be recognised by it.
        if blind_forms := [form for form in forms if not form[0].is_known]:
            forms = blind_forms
        if strict_forms := [form for form in forms if not form[0].is_inverted]:
            forms = strict_forms
        return {
            "file": file.path,
            "span": [block.start, block.end],
            "name": list(block.name_span) if block.name_span and begins_line else None,
            "blind": bool(blind_forms),
            "required": any(not self.required.isdisjoint(fails) for _, fails in forms),
            "forms": [{"edits": [[edit.start, edit.end, edit.text]], "fails": fails} for edit, fails in forms],
        }

    def _grade_gold(self, document: dict[str, Any]) -> set[TestId] | None:
        """Grade the gold patch; return the tests whose outcomes were not as expected, None if there are none."""
        judgement = blind.Judgement(self.required | self.others)
        # Drawn as in a real grading: a document that gold fails by chance would fail honest solutions, too.
        for evaluation in blind.draw_evaluations(document, secrets.SystemRandom()):
            judgement.add(evaluation, self._run(evaluation.files).report.list_results())
        return None if judgement.is_right else set(judgement.wrong)


def plan_evaluations(
    test_files: Mapping[str, bytes], blocks: Sequence[dict[str, Any]], *, can_copy: bool, seconds: float
) -> dict[str, Any]:
    """Return the document with the smallest number of evaluations, then of copies, that reaches the bound.

    Only blind blocks count and are copied, where a required block is blind. Where none is, all count: a submission
    has to compare texts to find the sabotaged tests.

    Args:
        test_files: path -> content of the test files.
        blocks: the blocks of the document.
        can_copy: whether gold passes with copies of blocks.
        seconds: duration of a run of all tests; a grading may take `GRADING_SECONDS`.
    """
    if any(block["blind"] and block["required"] for block in blocks):
        blocks = [block if block["blind"] else {**block, "name": None} for block in blocks]
        counted = blocks
    else:
        counted = [{**block, "blind": True} for block in blocks]
    files = {block["file"] for block in blocks}
    document: dict[str, Any] = {
        "files": {path: content.decode() for path, content in test_files.items() if path in files},
        "blocks": list(blocks),
        "evaluations": blind.FIRST_EVALUATIONS,
        "copies": 0,
    }
    can_copy = can_copy and any(block["name"] for block in counted if block["required"])
    plans = [(blind.FIRST_EVALUATIONS, copies) for copies in range(MAX_COPIES + 1)] if can_copy else []
    most = min(MAX_EVALUATIONS, int(GRADING_SECONDS / seconds) if seconds else MAX_EVALUATIONS)
    plans += [(evaluations, 0) for evaluations in range(blind.FIRST_EVALUATIONS, max(most, 2) + 1)]
    for evaluations, copies in plans:
        document |= {"evaluations": evaluations, "copies": copies}
        if blind.compute_bound({**document, "blocks": counted}) <= BOUND:
            break
    return document


def build_controls(
    evaluator: Evaluator,
    repository: GitRepository,
    base: str,
    *,
    test_patch: bytes,
    gold_patch: bytes,
    tests: Sequence[TestId],
    others: Sequence[TestId],
    seconds: float,
) -> BlindControls:
    """Make sabotaged forms of the tests, and run the gold patch to confirm which of them it fails.

    Args:
        evaluator: its image holds the tree of `base`, or a tree with the same test files.
        repository: repository that holds the commit `base`.
        base: the commit that the test patch applies to.
        test_patch: test patch that adds the tests; empty where `base` has them.
        gold_patch: the patch with which all of the tests pass.
        tests: the tests to control, FAIL_TO_PASS as a rule.
        others: the other tests of the task.
        seconds: duration of a run of all tests.

    Raises:
        Transient: the engine failed.
    """
    wanted = sorted({test.partition("::")[0] for test in tests})
    try:
        added, changed = list_patch_paths(test_patch), list_patch_paths(gold_patch)
        files = [path for path in wanted if (path in added or is_protected(path)) and path not in changed]
        old, new = read_test_files(repository, base, test_patch, files)
    except GitError:
        return BlindControls()
    builder = ControlBuilder(
        evaluator=evaluator,
        gold_patch=gold_patch,
        required=frozenset(tests),
        others=frozenset(others) - frozenset(tests),
        test_files=new,
        old_files=old,
        seconds=seconds,
        random=Random(base),  # noqa: S311 - the choice of forms is no secret, which of them are used is
    )
    return builder.build()


def read_test_files(
    repository: GitRepository, base: str, patch: bytes, files: Sequence[str]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return path -> content of `files` in the tree of `base`, and with `patch` applied, without absent files.

    Raises:
        GitError: the patch does not apply.
    """
    with ScratchIndex(repository, base) as index:
        old = {path: index.read_file(path) for path in files}
        index.apply(patch)
        new = {path: index.read_file(path) for path in files}
    return _drop_absent(old), _drop_absent(new)


def _drop_absent(contents: Mapping[str, bytes | None]) -> dict[str, bytes]:
    return {path: content for path, content in contents.items() if content is not None}


def _list_tests(block: Mapping[str, Any]) -> set[TestId]:
    return {test for form in block["forms"] for test in form["fails"]}


def assign_words(number: int) -> tuple[int, list[frozenset[int]]]:
    """Return a number of runs, and for each form the runs that use it, so that no form's runs contain another's.

    The words of half the length are the most that have this property (Sperner's theorem).
    """
    length = next(length for length in count(1) if comb(length, (length + 1) // 2) >= number)
    words = combinations(range(length), (length + 1) // 2)
    return length, [frozenset(word) for word in islice(words, number)]
