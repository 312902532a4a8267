"""Verifier of test-writing tasks: runs the submitted tests before and after the fix, on its variants and on mutants.

It decides like `verifiers.rewards.writing`, with the same functions (`guest.scoring`).
"""

from __future__ import annotations

import os
import posixpath
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from guest.scoring import submitted_tests as scoring
from guest.scoring.patch_rules import (
    MAX_PATCH_BYTES,
    PATCH_FAILED_EXIT,
    PATCH_FAILED_MESSAGE,
    READ_SCRIPT,
    TestPathRules,
    TouchedFile,
    parse_raw_diff,
)
from guest.verifier import grade
from guest.verifier.kind_score import KindScore
from guest.verifier.tree_runs import EMPTY_REPORT, ContainerReport, TreeRun, TreeRunner

CANARY_FOLDER = "MERGEMILL_CANARY_FOLDER"
"""Stands in the script for the folder of the canaries."""


@dataclass(frozen=True)
class SubmittedFiles:
    """A submission as git rewrites it, the files it touches, and those that the framework runs."""

    patch: bytes
    touched: Sequence[TouchedFile]
    existing: Sequence[str]
    possible: Sequence[str]
    unrecognized: frozenset[str]


def score_tests(task: Mapping[str, Any], submission: bytes, folder: str, work: str) -> KindScore:
    """Return the score of submitted tests.

    Args:
        task: content of task.json.
        submission: a patch of tests.
        folder: folder of the verifier's files.
        work: a new folder of root.

    Raises:
        InfrastructureFailure: the evaluation itself failed.
    """
    runner = TreeRunner(task["workdir"], work, task["seconds"])
    if not submission.strip():
        return KindScore(0.0, {}, "the patch is empty")
    rules = TestPathRules(**task["rules"])
    submitted = read_submission(runner, submission, rules)
    if submitted is None:
        return KindScore(0.0, {}, "the patch does not apply")
    if violation := rules.find_violation(submitted.touched):
        return KindScore(0.0, {}, violation, (violation,) if submitted.touched else ())
    return WritingVerifier(task, submitted, runner, folder).score()


def read_submission(runner: TreeRunner, patch: bytes, rules: TestPathRules) -> SubmittedFiles | None:
    """Return the files that a patch touches; None when it does not apply."""
    if len(patch) > MAX_PATCH_BYTES:
        return None
    run_dir = runner.make_path("read")
    os.mkdir(run_dir)
    with open(os.path.join(run_dir, "patch"), "wb") as file:
        file.write(patch)
    program = os.path.join(grade.HERE, "apply_patch.py")
    code = subprocess.call(["/bin/bash", "-c", READ_SCRIPT, "mergemill", run_dir, runner.tree, program])
    if code == PATCH_FAILED_EXIT:
        return None
    if code:
        raise grade.InfrastructureFailure("git cannot read the patch")
    with open(os.path.join(run_dir, "read", "raw"), "rb") as file:
        touched = list(parse_raw_diff(file.read()))
    with open(os.path.join(run_dir, "read", "patch"), "rb") as file:
        patch = file.read()
    return SubmittedFiles(
        patch,
        touched,
        rules.list_existing_tests(touched),
        rules.list_possible_tests(touched),
        frozenset(entry.path for entry in touched if rules.is_unrecognized(entry)),
    )


@dataclass
class WritingVerifier:
    """Scores a submission gate by gate."""

    task: Mapping[str, Any]
    submitted: SubmittedFiles
    runner: TreeRunner
    folder: str
    parts: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gold = self._read("gold.patch")
        self.script = self._render_script(self.submitted.patch, self.submitted.possible)

    def score(self) -> KindScore:
        """Return the score."""
        result = self._compare_trees()
        self.parts = {"detects": float(bool(result.detecting_tests)), "holds": float(result.is_valid)}
        if failure := result.find_failure() or self._check_gates(result.supporting_tests):
            return KindScore(0.0, self.parts, failure, result.tampering or result.lost_tests[:1])
        return self._score_quality(result.supporting_tests)

    def _compare_trees(self) -> scoring.SubmittedTestsResult:
        """Run the tests before and after the fix, and repeat the runs if the first runs are valid."""
        submitted = self.submitted
        before = [self._run()]
        after = [self._run(self.gold)]
        if after[0].tree_error == PATCH_FAILED_MESSAGE:
            return scoring.SubmittedTestsResult(failures=("the patch does not apply after the fix",))
        baseline = EMPTY_REPORT
        if submitted.existing or not submitted.possible:
            script = self._render_script(b"", submitted.existing)
            baseline = self.runner.run(script, test_patch=b"", files=submitted.existing).report or EMPTY_REPORT
        stray = self._find_stray_file()
        result = self._compare(baseline, before, after)
        if stray:
            return replace(result, tampering=(f"{stray} is no test: the framework collects none from it",))
        if not result.detecting_tests or not result.is_valid or result.tampering:
            return result
        for seed in range(1, scoring.REPEATS):
            before.append(self._run(seed=seed))
            after.append(self._run(self.gold, seed=seed))
        return self._compare(baseline, before, after)

    def _find_stray_file(self) -> str | None:
        """Return an unrecognised file from which the framework collects no test by itself."""
        if not self.submitted.unrecognized:
            return None
        script = self._render_script(self.submitted.patch, ())
        run = self.runner.run(script, patch=self.gold, test_patch=self.submitted.patch)
        collected = {test.partition("::")[0] for test in (run.report or EMPTY_REPORT).outcomes}
        return min(self.submitted.unrecognized - collected, default=None)

    def _compare(
        self, baseline: ContainerReport, before: Sequence[TreeRun], after: Sequence[TreeRun]
    ) -> scoring.SubmittedTestsResult:
        result = scoring.compare_reports(
            baseline,
            [run.report or EMPTY_REPORT for run in before],
            [run.report or EMPTY_REPORT for run in after],
            pass_to_pass=self.task["PASS_TO_PASS"],
            listed_tests={*self.task["FAIL_TO_PASS"], *self.task["PASS_TO_PASS"]},
        )
        failures = ["the runner left no report" for run in after if run.report is None]
        wrong = any(run.canaries == "wrong" for run in (*before, *after))
        tampering = ("canary: a test that must fail passed, or one that must pass failed",) if wrong else ()
        return replace(result, failures=(*result.failures, *failures), tampering=tampering)

    def _check_gates(self, tests: frozenset[str]) -> str | None:
        """Return the reason that valid tests earn 0 all the same."""
        false_alarms = [
            f"{test} fails although the behaviour is the same ({edit['operator']})"
            for edit in self.task["variants"]
            if (test := scoring.find_false_alarm(self._run_on_edit(edit).report, tests))
        ]
        missed = 0
        for edit in self._list_mutants(rewritten=True):
            run = self._run_on_edit(edit)
            missed += scoring.is_missed(run.report, tests, killed=run.killed)
        self.parts.update(false_alarms=float(len(false_alarms)), faults_missed=float(missed))
        if false_alarms:
            return f"false alarm: {false_alarms[0]}"
        return "the tests do not detect a rewritten form of the fault" if missed else None

    def _score_quality(self, tests: frozenset[str]) -> KindScore:
        """Return the score of tests that passed all gates but the last."""
        mutants = self._list_mutants(rewritten=False)
        seconds = scoring.SHORT_RUN_SECONDS + 4 * self.runner.longest
        killed = []
        for edit in mutants:
            run = self._run_on_edit(edit, seconds=seconds)
            if not scoring.is_missed(run.report, tests, killed=run.killed):
                killed.append(edit)
        if mutants:
            self.parts["mutants_killed"] = len(killed) / len(mutants)
        if (own := _exclude_omitted(mutants)) and not _exclude_omitted(killed):
            return KindScore(0.0, self.parts, f"none of {len(own)} mutants of the fix is detected")
        if spans := self.task["uncovered_spans"]:  # the collectors stay in the container, so this run is the last
            covered = self._run(self.gold, collectors=os.path.join(self.folder, "coverage")).covered
            if covered is not None:
                self.parts["covered"] = scoring.compute_line_share(spans, covered)
        value = scoring.compute_quality(self.parts)
        return KindScore(value, self.parts, f"{len(killed)} of {len(mutants)} mutants are detected")

    def _list_mutants(self, *, rewritten: bool) -> list[Mapping[str, Any]]:
        operator = scoring.REWRITTEN_FAULT
        return [edit for edit in self.task["mutants"] if (edit["operator"] == operator) == rewritten]

    def _run_on_edit(self, edit: Mapping[str, Any], seconds: float | None = None) -> TreeRun:
        return self._run(scoring.concatenate_patches(self.gold, self._read(edit["patch"])), seconds=seconds)

    def _run(
        self, patch: bytes = b"", *, seed: int = 0, seconds: float | None = None, collectors: str | None = None
    ) -> TreeRun:
        """Run the submitted tests on the tree with a patch."""
        return self.runner.run(
            self.script,
            patch=patch,
            test_patch=self.submitted.patch,
            files=self.submitted.possible,
            seed=seed,
            seconds=seconds,
            collectors=collectors,
        )

    def _render_script(self, patch: bytes, files: Sequence[str]) -> bytes:
        """Return the evaluation script for some test files, with canaries beside them; without files for all tests.

        `patch`: the test patch of the run; the paths that it touches are restored before it is applied.
        """
        script = self._read("canaries.sh" if files and self.task["has_canaries"] else "plain.sh")
        folders = Counter(posixpath.dirname(path) or "." for path in sorted(files)).most_common(1)
        touched = [entry.path for entry in self.submitted.touched] if patch else []
        words = " ".join(shlex.quote(path) for path in touched)
        script = script.replace(b"\npatched=( )\n", f"\npatched=( {words} )\n".encode())
        folder = shlex.quote(folders[0][0]) if folders else "."
        return script.replace(f"\nfolder={CANARY_FOLDER}\n".encode(), f"\nfolder={folder}\n".encode())

    def _read(self, name: str) -> bytes:
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()


def _exclude_omitted(mutants: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the mutants that are more than an omitted part of the fix."""
    return [edit for edit in mutants if edit["operator"] != scoring.OMITTED_HUNK]
