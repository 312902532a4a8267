"""Trial of an answer of the model: its text first, then runs of the tests with and without the bug.

The bug and the written tests are run in the image of the base tree, which needs no build. Where the results of the
written tests differ, the agent's tree becomes an image of its own, and its lists come from repeated runs, as those of
injected bugs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from backends.git import GitError, GitRepository
from backends.index import ScratchIndex
from backends.llm.base import Message
from backends.sandbox.base import ContainerPool
from backends.services import Services
from backends.tree import CommitTree
from derivers.base import KindRejection, build_task
from derivers.injected.evidence import InjectionEvidence, verify_injection
from derivers.injected.failure_statement import find_leak
from derivers.injected.patches import InjectionPatches, build_injection_patches
from derivers.injected.search import Reason as BugReason
from derivers.injected.search import classify_run
from derivers.mirrored.answer import EditError, MirrorAnswer, MirroredTestFile, apply_edits, join_statement
from derivers.mirrored.gates import AnswerProgress, MirrorGates, MirrorObjection, Reason
from derivers.mirrored.matching import MirrorPlace
from derivers.mirrored.writer import MAX_STATEMENT_CHARS, MIN_STATEMENT_CHARS, PROMPT
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.script.render import render_plan_script
from languages.paths import is_source
from mutation import build_patch, has_same_code, is_program
from mutation.grammars import find_grammar
from taskdb.records import Kind, MirrorOrigin, Task, TestId, TestOrigin, WrittenTests
from taskdb.records.lineage import Lineage

MAX_REPORTED = 5
"""Tests that an objection names."""
MIN_PROJECT_CHARS = 4
"""Letters of a project's name from which a statement must not contain it; shorter ones are words."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b|\b\d+(\.\d+)? ?(s|ms|seconds)\b|/tmp/[\w./-]+")
_BUG_REASONS: Mapping[BugReason, tuple[Reason, str]] = {
    BugReason.TIMES_OUT: (Reason.TIMES_OUT, "with the bug the tests do not end"),
    BugReason.BUILD_BREAKS: (Reason.BUILD_BREAKS, "with the bug tests are missing from the report"),
    BugReason.ALL_TESTS_FAIL: (Reason.ALL_TESTS_FAIL, "with the bug no test passes, or far too many fail"),
    BugReason.TESTS_IN_SOURCE: (
        Reason.TESTS_IN_SOURCE,
        "with the bug tests of the project fail that stand in source files, which cannot be hidden",
    ),
    BugReason.NO_IMAGE: (Reason.NO_IMAGE, "the tree with the bug cannot be built"),
    BugReason.NOT_STABLE: (
        Reason.NOT_STABLE,
        "no test fails by an assertion or error in every run with the bug and passes in every run without it",
    ),
}
"""Reason of an injected bug -> reason and detail of the objection to a mirrored one."""


class AnswerRejectedError(Exception):
    """An answer is rejected by `objection`."""

    def __init__(self, objection: MirrorObjection) -> None:
        super().__init__(objection.detail)
        self.objection = objection


def reject(reason: str, detail: str, progress: AnswerProgress, *, is_final: bool = False) -> NoReturn:
    """Raise AnswerRejectedError with an objection of these fields."""
    raise AnswerRejectedError(
        MirrorObjection(reason=str(reason), detail=_ADDRESS.sub("...", detail), progress=progress, is_final=is_final)
    )


@dataclass(frozen=True, kw_only=True)
class MirrorBase:
    """The base tree in which bugs are made: its environment, files and tests."""

    lineage: Lineage
    services: Services
    repository: GitRepository
    tree: CommitTree
    sources: Mapping[str, bytes]
    """Source files that passing tests execute, the preferred first."""
    passing: frozenset[TestId]
    """Tests that pass."""
    hideable: frozenset[str]
    """Test files that can be removed from the agent's tree."""
    files: tuple[str, ...]
    """Test files that are run; empty for the whole suite."""

    @property
    def base_commit(self) -> str:
        """The base commit."""
        return self.lineage.candidate.base_commit


@dataclass(frozen=True, kw_only=True)
class MirrorTrial:
    """Trial of an answer about one change."""

    base: MirrorBase
    pool: ContainerPool
    """Containers of the base tree."""
    gates: MirrorGates
    place: MirrorPlace
    answer: MirrorAnswer

    def run(self, number: int, model: str, attempt: int, transcript: Sequence[Message]) -> Task | MirrorObjection:
        """Return the task, or the first objection to the answer.

        Args:
            number: number in the task's name.
            model: name of the model that answered.
            attempt: number of the answer about this change, from 1.
            transcript: the conversation.

        Raises:
            Transient: engine, disk or network failed.
        """
        try:
            bug = self._read_bug()
            written = self._read_tests()
            self._check_statement(bug)
            hidden, tests = self._run_in_base_tree(bug, written)
            patches = self._build_patches(bug, written, hidden)
            evidence = self._verify(patches, hidden, tests)
            record = WrittenTests(
                patch=self.base.services.artifacts.put(written),
                files=self._written_files,
                model=model,
                prompt=PROMPT,
                attempt=attempt,
                transcript=self._store_transcript(transcript),
                faults=0,
                faults_detected=0,
                variants=0,
            )
            return self._check_task(self._build_task(number, evidence, patches, record))
        except AnswerRejectedError as rejected:
            return rejected.objection

    # ----------------------------------------------------------------------------------------------- the text

    def _read_bug(self) -> bytes:
        """Return the bug as a patch to the base tree."""
        edits, progress = self.answer.edits, AnswerProgress.BUG_READ
        if not edits:
            reject(Reason.NO_COUNTERPART, "the model finds nothing comparable", AnswerProgress.ANSWERED, is_final=True)
        paths = dict.fromkeys(edit.path for edit in edits)
        for path in paths:
            if not (self.base.tree.is_file(path) and is_source(path)) or path in self.base.hideable:
                reject(Reason.BUG_OUTSIDE_SOURCE, f"{path} is no source file of the project", progress)
        sources = {path: self.base.repository.read_file(self.base.base_commit, path) or b"" for path in paths}
        try:
            changed = apply_edits(edits, sources)
        except EditError as error:
            reject(Reason.BUG_DOES_NOT_APPLY, str(error), progress)
        for path, after in changed.items():
            # Without a grammar the runs alone decide.
            if find_grammar(path) is not None and not is_program(path, sources[path], after):
                reject(Reason.BUG_DOES_NOT_PARSE, f"{path} with the bug has a syntax error", progress)
        if all(has_same_code(path, sources[path], after) for path, after in changed.items()):
            reject(Reason.BUG_DOES_NOTHING, "only comments and white space differ", progress)
        return b"".join(build_patch(path, sources[path], after) for path, after in sorted(changed.items()))

    def _read_tests(self) -> bytes:
        """Return the written test files as a patch to the base tree."""
        language = self.base.lineage.candidate.language
        rejection = self.gates.check_files(self.answer.files, language, self.base.tree.entries.keys())
        if rejection is not None:
            reject(rejection.reason, rejection.detail, AnswerProgress.TESTS_READ)
        with ScratchIndex(self.base.repository, self.base.base_commit) as index:
            for file in self.answer.files:
                index.write_file(file.path, _encode(file))
            return index.diff()

    @property
    def _written_files(self) -> tuple[str, ...]:
        return tuple(sorted(file.path for file in self.answer.files))

    def _check_statement(self, patch: bytes) -> None:
        """Reject a statement that is too short or long, contains a line of a patch, or names the other project."""
        progress = AnswerProgress.STATEMENT_READ
        n_chars = len(self.answer.text.strip())
        if not self.answer.title.strip() or not MIN_STATEMENT_CHARS <= n_chars <= MAX_STATEMENT_CHARS:
            detail = f"the text has {n_chars} characters, not {MIN_STATEMENT_CHARS} to {MAX_STATEMENT_CHARS}"
            reject(Reason.STATEMENT_LENGTH, detail if self.answer.title.strip() else "there is no title", progress)
        statement = join_statement(self.answer)
        if line := find_leak(statement, patch):
            reject(Reason.STATEMENT_LEAKS, f"the statement has a line of the bug or of its fix: {line!r}", progress)
        if name := self._find_other_name(statement):
            reject(Reason.NAMES_OTHER_PROJECT, f"the statement names {name}, which the issue was taken from", progress)

    def _find_other_name(self, statement: str) -> str:
        """Return the name of the mirrored change's project or its owner's path, where a statement has it; or nothing.

        A name that this project uses itself is no trace of the other.
        """
        own, other = (repo.lower() for repo in (self.base.lineage.candidate.repo, self.place.model.candidate.repo))
        name = other.rpartition("/")[2]
        text = statement.lower()
        if other in text:
            return self.place.model.candidate.repo
        is_distinct = len(name) >= MIN_PROJECT_CHARS and name not in own and not self._uses_word(name)
        return name if is_distinct and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) else ""

    def _uses_word(self, name: str) -> bool:
        """Return whether a source file that is shown contains a name."""
        return any(name in self.base.sources[path].decode(errors="replace").lower() for path in self.place.paths)

    # ------------------------------------------------------------------------------------------------ the runs

    def _run_in_base_tree(self, bug: bytes, written: bytes) -> tuple[list[str], frozenset[TestId]]:
        """Run the tests once without and once with the bug.

        Returns:
            The project's own test files that must be hidden, as tests in them fail; and the written tests.
        """
        plan, files = self.base.lineage.require_environment().plan, self._select_files()
        script = render_plan_script(plan, test_patch=written, files=files, canaries_beside=())
        tests = self._list_written(run_tests(self.pool, script, workdir=plan.workdir))
        result = run_tests(self.pool, script, workdir=plan.workdir, patch=bug)
        passing, paths = self.base.passing | tests, {edit.path for edit in self.answer.edits}
        failing = classify_run(result, passing, self.base.hideable - paths | frozenset(self._written_files))
        if failing is BugReason.NO_MUTANT_DETECTED:
            failing = ()
        if isinstance(failing, BugReason):
            reason, detail = _BUG_REASONS.get(failing, (failing, "the bug cannot be used"))
            reject(reason, detail, AnswerProgress.RUN)
        if self.base.passing <= set(failing):
            reject(*_BUG_REASONS[BugReason.ALL_TESTS_FAIL], AnswerProgress.RUN)
        if not tests & set(failing):
            detail = f"every written test passes with the bug, such as {min(tests)}"
            reject(Reason.TESTS_PASS_WITH_BUG, detail, AnswerProgress.RUN)
        return sorted({test.partition("::")[0] for test in failing} - set(self._written_files)), tests

    def _list_written(self, result: EvaluationResult) -> frozenset[TestId]:
        """Return the written tests of a run without the bug, all of which must pass."""
        report, files = result.report, self._written_files
        if report is None:
            reject(Reason.TESTS_NOT_RUN, f"with the written tests there is no report: {result.failure_detail}", _RUN)
        if failing := report.list_failing(files):
            messages = (
                f"{test}: {report.outcomes[test].message if test in report.outcomes else report.uncollected[test]}"
                for test in failing[:MAX_REPORTED]
            )
            reject(Reason.TESTS_FAIL_WITHOUT_BUG, f"without the bug these tests fail: {'; '.join(messages)}", _RUN)
        tests = frozenset(test for test in report.outcomes if test.partition("::")[0] in files)
        if not any(map(report.has_passed, tests)):
            reject(Reason.TESTS_NOT_RUN, f"the test runner reports no passing test of {', '.join(files)}", _RUN)
        return frozenset(filter(report.has_passed, tests))

    def _select_files(self) -> tuple[str, ...]:
        """Return the test files to run, the written ones among them; empty for the whole suite."""
        return tuple(sorted({*self.base.files, *self._written_files})) if self.base.files else ()

    def _build_patches(self, bug: bytes, written: bytes, hidden: Sequence[str]) -> InjectionPatches:
        try:
            return build_injection_patches(
                self.base.repository, self.base.base_commit, [bug], hidden, own_tests=written
            )
        except GitError as error:
            reject(Reason.BUG_DOES_NOT_APPLY, str(error), AnswerProgress.RUN)

    def _verify(self, patches: InjectionPatches, hidden: Sequence[str], tests: Collection[TestId]) -> InjectionEvidence:
        """Return the evidence of repeated runs in the task's own image, which must decide about every written test."""
        evidence = verify_injection(
            self.base.lineage,
            self.base.services,
            patches,
            hidden=sorted({*hidden, *self._written_files}),
            files=self._select_files(),
        )
        if isinstance(evidence, BugReason):
            reason, detail = _BUG_REASONS.get(evidence, (evidence, "the bug cannot be used"))
            reject(reason, detail, AnswerProgress.RUN, is_final=evidence is BugReason.NO_IMAGE)
        failing = {test for test, _ in evidence.lists.fail_to_pass}
        if unlisted := sorted(set(tests) - failing - set(evidence.lists.pass_to_pass)):
            detail = f"{unlisted[0]} does not have the same result in every run"
            reject(Reason.TESTS_UNRELIABLE, detail, AnswerProgress.VERIFIED)
        if not failing & set(tests):
            reject(*_BUG_REASONS[BugReason.NOT_STABLE], AnswerProgress.VERIFIED)
        # The agent sees all other test files, in which no test may fail.
        if not {test.partition("::")[0] for test in failing} <= {*hidden, *self._written_files}:
            reject(*_BUG_REASONS[BugReason.NOT_STABLE], AnswerProgress.VERIFIED)
        self._check_statement(patches.gold_patch)
        return evidence

    # ------------------------------------------------------------------------------------------------ the task

    def _store_transcript(self, messages: Sequence[Message]) -> str:
        conversation = [{"role": message.role, "text": message.text} for message in messages]
        return self.base.services.artifacts.put_text(json.dumps(conversation, indent=1))

    def _build_task(
        self, number: int, evidence: InjectionEvidence, patches: InjectionPatches, written: WrittenTests
    ) -> Task:
        lineage, put = self.base.lineage, self.base.services.artifacts.put
        other = self.place.model.candidate
        return build_task(
            lineage,
            Kind.MIRRORED,
            number,
            # It rests on nothing that the verification of the change has decided, so a new one does not replace it.
            parent=lineage.require_environment().id,
            problem_statement=join_statement(self.answer),
            hints="",
            license=join_licenses(lineage.candidate.license, other.license),
            setup_patch=put(patches.setup_patch),
            gold_patch=put(patches.gold_patch),
            test_patch=put(patches.test_patch),
            **evidence.controls.make_fields(self.base.services.artifacts),
            FAIL_TO_PASS=evidence.lists.fail_to_pass,
            PASS_TO_PASS=evidence.lists.pass_to_pass,
            eval_script=self.base.services.artifacts.put_text(evidence.script),
            image=evidence.image.name,
            image_digest=evidence.image.digest,
            test_seconds=evidence.test_seconds,
            tests=TestOrigin.MODEL_WRITTEN,
            published=None,
            mirror=MirrorOrigin(
                candidate=other.id, name=other.name, repo=other.repo, license=other.license, written_tests=written
            ),
        )

    def _check_task(self, task: Task) -> Task:
        """Return the task with the evidence of the checks by other stages."""
        result = self.gates.check_task(self.base.lineage, task, self.place.model.candidate, self.base.services)
        if isinstance(result, KindRejection):
            reject(str(result.reason), result.detail, AnswerProgress.VERIFIED)
        return result


_RUN = AnswerProgress.RUN


def join_licenses(own: str, other: str) -> str:
    """Return the licence of a work with parts under two licences, as an SPDX expression.

    It is unknown where one of them is, so that a selection by licence has no task that rests on another one.
    """
    unknown = "NOASSERTION"
    if own == other or unknown in (own, other):
        return own if own == other else unknown
    return " AND ".join(f"({part})" if " OR " in part else part for part in (own, other))


def _encode(file: MirroredTestFile) -> bytes:
    """Return the content with a line end, without which the patch would have the mark of a missing one."""
    return (file.content if file.content.endswith("\n") else f"{file.content}\n").encode(errors="replace")
