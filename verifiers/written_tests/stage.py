"""The stage `verify` of a change for which a model writes the tests."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from backends.index import ScratchIndex
from backends.services import Services
from backends.tree import CommitTree
from evaluation.edits.fixed_files import read_fixed_files
from languages.paths import is_part_of_tests
from languages.registry import detect_file_language
from taskdb.records import Rejection, TestId, Verification, WrittenTests
from taskdb.records.lineage import ChangeTests, Lineage
from verifiers.judge.client import JudgeClient
from verifiers.strength import EditKind, EditOutcome, EditRunner, TriedEdit, draft_edits
from verifiers.verify import CandidateVerifier, Reason, VerificationFailure, make_rejection
from verifiers.written_tests.answer import (
    Objection,
    TestFileAnswer,
    WritingReason,
    find_path_objection,
    find_text_objection,
)
from verifiers.written_tests.writer import PROMPT, TestWriter

MAX_EDITS = 15
"""Edits of the gold patch with which written tests are run: at most three rewrites, the others are faults."""
MAX_REPORTED = 5
"""Faults that are named in an objection."""
HOPELESS = (Reason.PATCH_DOES_NOT_APPLY, Reason.OUT_OF_BUDGET, Reason.KILLED_BY_DISK)
"""Reasons of a verification that no other tests would change."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b|\b\d+(\.\d+)? ?(s|ms|seconds)\b")
_TEMPORARY = re.compile(r"/tmp/[\w./-]+")  # noqa: S108 - a pattern, no file


def verify_with_written_tests(lineage: Lineage, services: Services) -> Verification | Rejection:
    """Let the model write tests until some are accepted; return the verification with them, or the last objection.

    Args:
        lineage: a candidate without tests, with its environment.
        services: sandbox, clones, artifacts, settings and the model.

    Raises:
        Transient: engine, disk, network or endpoint failed.
    """
    started = time.perf_counter()
    result = _WrittenTestsVerifier(lineage=lineage, services=services).verify()
    seconds = time.perf_counter() - started
    if isinstance(result, Verification):
        return result.model_copy(update={"seconds": seconds})
    return make_rejection(lineage, result.reason, result.detail, result.log, seconds=seconds)


@dataclass(kw_only=True)
class _WrittenTestsVerifier:
    """The attempts for a change."""

    lineage: Lineage
    services: Services

    def verify(self) -> Verification | Objection:
        """Return the verification with the first tests that pass every check, or the objection to the last tests."""
        model, settings = self.services.model, self.services.settings
        if model is None:
            return Objection(reason=WritingReason.NO_MODEL, detail="the change has no tests, and --llm is off")
        writer = TestWriter(
            candidate=self.lineage.candidate,
            plan=self.lineage.require_environment().plan,
            tree=self._tree,
            gold_patch=self._gold_patch.decode(errors="replace"),
            client=JudgeClient.from_settings(model, settings, self.services.artifacts),
        )
        objection = Objection(reason=WritingReason.NO_ANSWER, detail="no attempt")
        for attempt in range(1, settings.verify.write_attempts + 1):
            answer = writer.write()
            if isinstance(answer, Objection):
                return objection if attempt > 1 else answer
            result = self._check(answer.files, writer, attempt)
            if isinstance(result, Verification):
                return result
            objection = result
            # Other tests would not change the reason, so further answers of the model would be paid for nothing.
            if result.is_final:
                break
            writer.object(result)
        return objection

    @cached_property
    def _tree(self) -> CommitTree:
        candidate = self.lineage.candidate
        clone = self.services.clones.open_history(candidate.source, candidate.repo, candidate.base_commit)
        return CommitTree(clone, candidate.base_commit)

    @cached_property
    def _gold_patch(self) -> bytes:
        return self.services.artifacts.get(self.lineage.candidate.gold_patch)

    @cached_property
    def _sources(self) -> frozenset[str]:
        """Paths of the program's files, before and after the change."""
        paths = {*self._tree.entries, *self.lineage.candidate.gold_files}
        return frozenset(path for path in paths if detect_file_language(path) and not is_part_of_tests(path))

    def _check(self, files: Sequence[TestFileAnswer], writer: TestWriter, attempt: int) -> Verification | Objection:
        """Return the verification with some test files, or the problem with them."""
        candidate = self.lineage.candidate
        # Objections that need no container come first.
        if objection := find_path_objection(
            files, candidate.language, self._tree.entries.keys(), candidate.gold_files
        ) or find_text_objection(files, candidate.language, self._sources):
            return objection
        tests = self._store_tests(files)
        environment = self.lineage.require_environment()
        limits = self.services.test_limits(environment.plan.language)
        with self.services.sandbox.open_pool(environment.image, limits=limits) as pool:
            verifier = CandidateVerifier(
                candidate=candidate,
                tests=tests,
                environment=environment,
                services=self.services,
                pool=pool,
                started=time.perf_counter(),
            )
            result = verifier.verify()
        if isinstance(result, VerificationFailure):
            return self._describe_failure(result, verifier)
        if objection := _find_unreliable(verifier):
            return objection
        tried = self._try_edits(result, tests)
        if objection := judge_edits(tried, self.services.settings.verify.write_min_detected):
            return objection
        faults, variants = split_edits(tried)
        written = WrittenTests(
            patch=tests.patch,
            files=tests.files,
            model=writer.client.model.name,
            prompt=PROMPT,
            attempt=attempt,
            transcript=writer.client.store_transcript(writer.transcript),
            faults=len(faults),
            faults_detected=sum(edit.outcome is EditOutcome.DETECTED for edit in faults),
            variants=len(variants),
        )
        return result.model_copy(update={"written_tests": written})

    def _store_tests(self, files: Sequence[TestFileAnswer]) -> ChangeTests:
        """Store the test patch that adds some files."""
        with ScratchIndex(self._tree.repository, self.lineage.candidate.base_commit) as index:
            for file in files:
                # Without the line end, the patch would contain the mark `\ No newline at end of file`.
                content = file.content if file.content.endswith("\n") else file.content + "\n"
                index.write_file(file.path, content.encode(errors="replace"))
            patch = index.diff()
        return ChangeTests(self.services.artifacts.put(patch), tuple(sorted(file.path for file in files)))

    def _describe_failure(self, failure: VerificationFailure, verifier: CandidateVerifier) -> Objection:
        detail = failure.detail
        if failure.reason is Reason.GOLD_FAILS and verifier.gold_runs:
            report = verifier.gold_runs[-1].report
            failing = report.list_failing(verifier.tests.files)[:MAX_REPORTED]
            detail = "with the change these tests fail: " + "; ".join(
                f"{test}: {report.outcomes[test].message if test in report.outcomes else report.uncollected[test]}"
                for test in failing
            )
        elif failure.reason is Reason.FLAKY:
            detail = f"{detail.partition(': ')[0]} does not have the same result in every run"
        return Objection(
            reason=failure.reason, detail=_clean(detail), log=failure.log, is_final=failure.reason in HOPELESS
        )

    def _try_edits(self, verification: Verification, tests: ChangeTests) -> list[TriedEdit]:
        """Run the written tests once with each of some edits of the gold patch."""
        candidate, environment = self.lineage.candidate, self.lineage.require_environment()
        with ScratchIndex(self._tree.repository, candidate.base_commit) as index:
            files = read_fixed_files(index, candidate.gold_files, self._gold_patch)
        runner = EditRunner(
            services=self.services,
            image=environment.image,
            language=environment.plan.language,
            workdir=environment.plan.workdir,
            script=self.services.artifacts.get_text(verification.eval_script),
            gold_patch=self._gold_patch,
            tests=_select_written(verification, tests),
            test_seconds=max(verification.list_gold_seconds(), default=0.0),
        )
        return runner.run(draft_edits(files, MAX_EDITS))


def _find_unreliable(verifier: CandidateVerifier) -> Objection | None:
    """Return an objection to a written test that does not pass in every gold run, or that varies before the change."""
    files = verifier.tests.files
    for report in (run.report for run in verifier.gold_runs):
        own = [test for test in report.outcomes if test.partition("::")[0] in files]
        bad = [test for test in own if not report.has_passed(test)] + [
            path for path in report.uncollected if path in files
        ]
        if bad:
            detail = f"{bad[0]} does not pass in every run with the change"
            return Objection(reason=WritingReason.UNRELIABLE, detail=detail)
    lists = verifier.compute_lists()
    varying = (
        [flaky_test.test for flaky_test in lists.flaky if flaky_test.test.partition("::")[0] in files] if lists else []
    )
    if varying:
        detail = f"{varying[0]} does not have the same result in every run"
        return Objection(reason=WritingReason.UNRELIABLE, detail=detail)
    return None


def _select_written(verification: Verification, tests: ChangeTests) -> tuple[TestId, ...]:
    """Return the listed tests of the written files, all FAIL_TO_PASS tests among them."""
    own = [test for test in verification.PASS_TO_PASS if test.partition("::")[0] in tests.files]
    return (*(test for test, _ in verification.FAIL_TO_PASS), *own)


def split_edits(tried: Sequence[TriedEdit]) -> tuple[list[TriedEdit], list[TriedEdit]]:
    """Return the faults and the rewrites that could be run."""
    ran = [edit for edit in tried if edit.outcome in (EditOutcome.DETECTED, EditOutcome.PASSED)]
    return (
        [edit for edit in ran if edit.kind is not EditKind.VARIANT],
        [edit for edit in ran if edit.kind is EditKind.VARIANT],
    )


def judge_edits(tried: Sequence[TriedEdit], min_detected: float) -> Objection | None:
    """Return an objection to tests that fail on a rewrite, or detect too few faults.

    Args:
        tried: edits of the gold patch with which the tests were run.
        min_detected: share of the faults that must be detected, 0..1.
    """
    faults, variants = split_edits(tried)
    for edit in variants:
        if edit.outcome is EditOutcome.DETECTED:
            detail = (
                f"{edit.by} fails on a rewrite of the change that keeps its behaviour ({edit.place}: {edit.detail})"
            )
            return Objection(reason=WritingReason.FALSE_ALARM, detail=detail)
    missed = [edit for edit in faults if edit.outcome is EditOutcome.PASSED]
    n_detected = len(faults) - len(missed)
    if not faults or n_detected >= max(1, min_detected * len(faults)):
        return None
    lines = [f"{edit.place}: {edit.detail}" for edit in missed[:MAX_REPORTED]]
    detail = f"{n_detected} of {len(faults)} faults in the change make a test fail; none fails with "
    return Objection(reason=WritingReason.WEAK, detail=detail + "; ".join(lines))


def _clean(text: str) -> str:
    """Return a text without the parts that differ between runs, so that the same answers lead to the same requests."""
    return _TEMPORARY.sub("/tmp/...", _ADDRESS.sub("...", text))  # noqa: S108 - a text
