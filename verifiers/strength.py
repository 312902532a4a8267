"""Strength of a task's tests: which faults in the gold patch they detect, and which rewrites of it they accept.

Faults are the gold patch without any of its hunks, and mutants of its lines. Each is run once, without blind controls:
the question is measured is whether the tests see a fault, not whether results can be forged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from backends.git import GitError, list_patch_renames, run_git
from backends.sandbox.base import ContainerPool
from backends.sandbox.container_names import make_folder_prefix
from backends.services import Services
from evaluation.edits.drafts import EditDraft, draft_line_mutants, draft_omissions, draft_rewrites
from evaluation.edits.fixed_files import FixedFile, select_fixed_files
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.parallel import PoolJob, run_parallel
from evaluation.runner.run import EvaluationResult, run_tests
from guest.scoring.submitted_tests import SHORT_RUN_SECONDS, concatenate_patches
from taskdb.records import Task, TestId

MAX_VARIANTS = 4
"""Rewrites of the gold patch that are tried at most."""


class EditKind(StrEnum):
    """Edit that is done to the gold patch."""

    HUNK = "hunk"
    """A hunk is left out."""
    MUTANT = "mutant"
    """A line has a fault."""
    VARIANT = "variant"
    """Text differs and behaviour does not."""


class EditOutcome(StrEnum):
    """Verdict that the tests made of an edit."""

    DETECTED = "detected"
    PASSED = "passed"
    NOT_BUILT = "not-built"
    """No test failed, but some are missing from the report: usually the tree does not build. It does not count."""
    NOT_SCORED = "not-scored"
    """The evaluation itself failed. It does not count."""


@dataclass(frozen=True, kw_only=True)
class TriedEdit:
    """An edit of the gold patch and its outcome. Lines are 1-based, in the gold tree, both ends included."""

    kind: EditKind
    operator: str
    path: str
    first_line: int
    last_line: int
    detail: str
    outcome: EditOutcome
    by: str
    """The first test that does not pass, or why the run has no results; empty where all tests pass."""

    @property
    def place(self) -> str:
        """Path and lines, such as `src/cart.py:10-12`."""
        end = f"-{self.last_line}" if self.last_line > self.first_line else ""
        return f"{self.path}:{self.first_line}{end}"


@dataclass(frozen=True, kw_only=True)
class OracleStrength:
    """How strong the tests of a task are.

    Attributes:
        fail_to_pass: number of FAIL_TO_PASS tests.
        controls: number of those with a sabotaged version that gold was seen to fail.
        score: share of the faults (omitted hunks and mutants) that were detected, 0..1; None where none could be run.
        hunks: omitted hunks that were run, individually.
        hunks_detected: those among them that some test misses.
        mutants: mutants that were run.
        mutants_detected: those among them that some test fails on.
        variants: rewrites that were run.
        variants_accepted: those among them that pass every test.
        untested_hunks: places of the hunks that no test misses.
        edits: everything that was tried.
    """

    fail_to_pass: int
    controls: int
    score: float | None = None
    hunks: int = 0
    hunks_detected: int = 0
    mutants: int = 0
    mutants_detected: int = 0
    variants: int = 0
    variants_accepted: int = 0
    untested_hunks: tuple[str, ...] = ()
    edits: tuple[TriedEdit, ...] = ()


def draft_edits(files: Sequence[FixedFile], limit: int) -> list[tuple[EditKind, EditDraft]]:
    """Return at most `limit` edits of a fix: rewrites, at most a fifth; then hunks, the longest first; then mutants.

    Hunks are at most half of the faults where there are mutants enough.
    """
    variants = draft_rewrites(files, min(MAX_VARIANTS, limit // 5))
    wanted = limit - len(variants)
    hunks = sorted(draft_omissions(files), key=lambda draft: draft.line - draft.last_line)
    mutants = draft_line_mutants(files, wanted)
    n_hunks = max(wanted // 2, wanted - len(mutants))
    hunks = sorted(hunks[:n_hunks], key=lambda draft: (draft.path, draft.line))
    return [
        *((EditKind.HUNK, draft) for draft in hunks),
        *((EditKind.MUTANT, draft) for draft in mutants[: wanted - len(hunks)]),
        *((EditKind.VARIANT, draft) for draft in variants),
    ]


def read_gold_files(base: Mapping[str, bytes], gold: bytes) -> list[FixedFile]:
    """Return the source files that a gold patch adds or changes and that are text, by path.

    A renamed file is compared with the file of its old name.

    Args:
        base: content of the regular files that the patch touches, in the agent's tree, by old names.
        gold: the patch; parts of it about links and submodules are ignored.

    Raises:
        GitError: git cannot parse the patch.
    """
    old_names = list_patch_renames(gold)
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("strength")) as name:
        folder = Path(name)
        for path, content in base.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        run_git("init", "-q", cwd=folder)
        # The error is raised after all other parts are applied, when the file of a part is no regular file.
        with suppress(GitError):
            run_git("apply", "--reject", "--whitespace=nowarn", "-", cwd=folder, data=gold)
        after = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and not path.is_symlink() and path.relative_to(folder).parts[0] != ".git"
        }
    before = {path: base[old_names.get(path, path)] for path in after if old_names.get(path, path) in base}
    return select_fixed_files(before, after)


def measure_strength(
    task: Task,
    services: Services,
    edits: Sequence[tuple[EditKind, EditDraft]],
    advance: Callable[[], object] = lambda: None,
) -> OracleStrength:
    """Run a task's tests with each edit of its gold patch, `services.settings.cluster.workers` at a time.

    A rewrite that a test refuses is run a second time, as a refusal is evidence against the task.

    Args:
        task: graded by lists of tests; its image must exist in the engine.
        services: sandbox, artifacts and settings.
        edits: the edits to try.
        advance: function that is called after each run of an edit; not for second runs.

    Raises:
        Transient: the engine failed.
    """
    runner = EditRunner(
        services=services,
        image=task.image,
        language=task.language,
        workdir=task.require_plan().workdir,
        script=services.artifacts.get_text(task.require_script()),
        gold_patch=services.artifacts.get(task.gold_patch),
        tests=(*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS),
        test_seconds=task.test_seconds,
    )
    tried = runner.run(edits, advance)
    refused = [at for at, edit in enumerate(tried) if (edit.kind, edit.outcome) == _REFUSED]
    # A refusal of a correct rewrite counts against the task, so it must not rest on a single run.
    for at, again in zip(refused, runner.run([edits[at] for at in refused]), strict=True):
        tried[at] = again
    return summarize_edits(task, tried)


_REFUSED = (EditKind.VARIANT, EditOutcome.DETECTED)


def summarize_edits(task: Task, edits: Iterable[TriedEdit] = ()) -> OracleStrength:
    """Return the strength of a task's tests from the edits that were tried."""
    edits = tuple(edits)
    ran = [edit for edit in edits if edit.outcome in (EditOutcome.DETECTED, EditOutcome.PASSED)]
    hunks, mutants, variants = ([edit for edit in ran if edit.kind is kind] for kind in EditKind)
    n_hunks, n_mutants = (sum(edit.outcome is EditOutcome.DETECTED for edit in group) for group in (hunks, mutants))
    n_faults = len(hunks) + len(mutants)
    return OracleStrength(
        fail_to_pass=len(task.FAIL_TO_PASS),
        controls=len(task.controls) if task.blind_controls else 0,
        score=round((n_hunks + n_mutants) / n_faults, 6) if n_faults else None,
        hunks=len(hunks),
        hunks_detected=n_hunks,
        mutants=len(mutants),
        mutants_detected=n_mutants,
        variants=len(variants),
        variants_accepted=sum(edit.outcome is EditOutcome.PASSED for edit in variants),
        untested_hunks=tuple(edit.place for edit in hunks if edit.outcome is EditOutcome.PASSED),
        edits=edits,
    )


@dataclass(frozen=True, kw_only=True)
class EditRunner:
    """Runs edits of a gold patch. `tests`: those that must detect a fault; `test_seconds`: of the longest gold run."""

    services: Services
    image: str
    language: str
    workdir: str
    script: str
    gold_patch: bytes
    tests: tuple[TestId, ...]
    test_seconds: float

    def run(
        self, edits: Sequence[tuple[EditKind, EditDraft]], advance: Callable[[], object] = lambda: None
    ) -> list[TriedEdit]:
        """Run the tests once with each edit."""
        if not edits:
            return []
        services, limits = self.services, self.services.test_limits(self.language)
        # A mutant may run for ever.
        seconds = min(limits.seconds, SHORT_RUN_SECONDS + 4 * self.test_seconds)
        jobs = [self._make_job(concatenate_patches(self.gold_patch, draft.patch), advance) for _, draft in edits]
        results = run_parallel(
            services.sandbox, self.image, replace(limits, seconds=seconds), jobs, services.settings.cluster.workers
        )
        return [self._make_tried(*edit, result) for edit, result in zip(edits, results, strict=True)]

    def _make_job(self, patch: bytes, advance: Callable[[], object]) -> PoolJob[EvaluationResult]:
        def run(pool: ContainerPool, last: bool) -> EvaluationResult:
            result = run_tests(pool, self.script, workdir=self.workdir, patch=patch, last=last)
            advance()
            return result

        return run

    def _make_tried(self, kind: EditKind, draft: EditDraft, result: EvaluationResult) -> TriedEdit:
        outcome, by = judge_run(result, self.tests)
        return TriedEdit(
            kind=kind,
            operator=draft.operator,
            path=draft.path,
            first_line=draft.line,
            last_line=draft.last_line,
            detail=draft.detail,
            outcome=outcome,
            by=by,
        )


def judge_run(result: EvaluationResult, tests: Iterable[TestId]) -> tuple[EditOutcome, str]:
    """Return the outcome of a run with an edit, and the first test that does not pass or why there are no results."""
    if result.infrastructure_error or not result.is_applied:
        return EditOutcome.NOT_SCORED, result.infrastructure_error or "the edit does not apply"
    # An honest run fits the limits, so a run that was killed shows the fault as a failed test does.
    if result.exec_result.killed_by:
        return EditOutcome.DETECTED, result.failure_detail
    report, missing = result.report or EMPTY_REPORT, ""
    for test in tests:
        if test not in report.outcomes:
            missing = missing or test
        elif not report.has_passed(test):
            return EditOutcome.DETECTED, test
    return (EditOutcome.NOT_BUILT, missing) if missing else (EditOutcome.PASSED, "")
