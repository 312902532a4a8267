"""Tasks from detected bugs: patches, image, lists, controls and statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from backends.git import GitError, GitRepository
from derivers.base import build_task
from derivers.injected import failure_statement
from derivers.injected.bug_sites import FunctionMap
from derivers.injected.bug_writer import BugWriter
from derivers.injected.evidence import EarlierRuns, InjectionEvidence, OwnChange, verify_injection
from derivers.injected.patches import InjectionPatches, build_injection_patches
from derivers.injected.reach import list_passing
from derivers.injected.search import BugSearch, DetectedBug, Reason
from derivers.statements import render_template
from evaluation.controls.memory import ControlMemory
from evaluation.lists import OutcomeLists
from evaluation.runner.evaluator import EvaluationRun
from taskdb.records import FailureKind, Injection, Kind, Task, TestId


@dataclass(frozen=True, kw_only=True)
class InjectedTaskBuilder:
    """Builds tasks from detected bugs."""

    search: BugSearch
    repository: GitRepository
    bug_writer: BugWriter | None
    functions: FunctionMap
    """Functions of the files of the base tree into which bugs are injected."""
    list_foreseen: Callable[[], Collection[frozenset[TestId]]] = tuple
    """Returns the tests that fail with each bug of which tasks are expected."""
    known_memory: ControlMemory | None = None
    """Memory of an earlier step of the search in this process."""
    stored_memory: Mapping[str, Any] | None = None
    """Fields of the memory after an earlier step, perhaps of another process; None for a search that begins."""

    @cached_property
    def memory(self) -> ControlMemory:
        """Values of tests and their results in runs: with the gold patch every task has the tree of the base."""
        if self.known_memory is not None:
            return self.known_memory
        base_commit = self.search.lineage.candidate.base_commit
        listed = list_passing(self.search.stable_report)
        return ControlMemory.share_tree(self.repository, base_commit, listed, self.stored_memory)

    def build_tasks(self, detected: Iterator[DetectedBug], own: OwnChange | None = None) -> list[Task]:
        """Return the tasks, each with bugs of its own; bugs that give none are counted in the tally.

        These are at most `injected_per_change` tasks of bugs alone, then `injected_on_top` with the change's own part.
        """
        settings = self.search.services.settings
        tasks = self._build_tasks(detected, settings.derive.injected_per_change, settings.derive.injected_bugs)
        if own is not None and tasks:
            tasks += self._build_tasks(detected, settings.derive.injected_on_top, 1, own, len(tasks))
        return tasks

    def find_place(self, bug: DetectedBug) -> tuple[str, str]:
        """Return the file and the function of a bug; the line's number where there is no function."""
        path, line = bug.mutation.path, bug.mutation.line
        return path, self.functions.find_name(path, line) or str(line)

    def _build_tasks(
        self,
        bugs: Iterator[DetectedBug],
        wanted: int,
        n_bugs: int,
        own: OwnChange | None = None,
        n_before: int = 0,
    ) -> list[Task]:
        """Return at most `wanted` tasks with `n_bugs` bugs each; their numbers follow `n_before`.

        The bugs of these tasks are in different functions. A function whose bug gave no task may give a task with its
        next bug.
        """
        tasks: list[Task] = []
        used: set[tuple[str, str]] = set()
        while len(tasks) < wanted:
            chosen = self._take_bugs(bugs, n_bugs, used)
            if len(chosen) < n_bugs:
                break
            task = self.build_task(list(chosen.values()), n_before + len(tasks) + 1, own)
            if isinstance(task, Reason):
                self.search.tally[task] += 1
            else:
                tasks.append(task)
                used.update(chosen)
        return tasks

    def _take_bugs(
        self, bugs: Iterator[DetectedBug], count: int, used: Set[tuple[str, str]]
    ) -> dict[tuple[str, str], DetectedBug]:
        """Return the next bugs, at most `count`, by their functions, which are different and not in `used`."""
        chosen: dict[tuple[str, str], DetectedBug] = {}
        while len(chosen) < count and (bug := next(bugs, None)):
            place = self.find_place(bug)
            if place not in used:
                chosen.setdefault(place, bug)
        return chosen

    def build_task(
        self,
        bugs: Sequence[DetectedBug],
        number: int,
        own: OwnChange | None = None,
        *,
        failing_sets: Collection[frozenset[TestId]] = (),
    ) -> Task | Reason:
        """Return the task of some bugs, or why they give none together.

        Args:
            bugs: the bugs.
            number: number of the task.
            own: the change's own part of the task, if any.
            failing_sets: FAIL_TO_PASS of tasks, each of which gives no further one.
        """
        lineage, services = self.search.lineage, self.search.services
        hidden = sorted({test.partition("::")[0] for bug in bugs for test in bug.failing_tests})
        base_commit, bug_patches = lineage.candidate.base_commit, [bug.patch for bug in bugs]
        try:
            patches = build_injection_patches(
                self.repository,
                base_commit,
                bug_patches,
                hidden,
                own_gold=own.gold_patch if own else b"",
                own_tests=services.artifacts.get(lineage.tests.patch) if own else b"",
            )
        except GitError:
            return Reason.BUGS_DO_NOT_COMBINE
        own_files = {test.partition("::")[0] for test in own.fail_to_pass} if own else set()
        files = sorted({*self.search.files, *own_files}) if self.search.files else ()

        def check(lists: OutcomeLists, buggy_run: EvaluationRun) -> Reason | None:
            if _list_failing(lists, None) in failing_sets:
                return Reason.SAME_TESTS_FAIL
            return self._check_failures(lists, buggy_run, bugs, hidden, own)

        evidence = verify_injection(
            lineage,
            services,
            patches,
            hidden=sorted({*hidden, *own_files}),
            files=files,
            own=own,
            earlier=None if own else self._find_earlier_runs(bugs, hidden),
            check=check,
        )
        if isinstance(evidence, Reason):
            return evidence
        self.search.note_canaries(hidden, evidence.has_canaries)
        failing = _list_failing(evidence.lists, own)
        statement = self._write_statement(evidence, sorted(failing), bugs, patches.gold_patch)
        if statement is None:
            return Reason.STATEMENT_LEAKS
        if own is not None:
            statement = render_template("combined/statement.md.j2", parts=[own.statement, statement])
        fields = self._get_fields(evidence, patches) | {"injections": tuple(map(self._describe_injection, bugs))}
        return build_task(lineage, Kind.INJECTED, number, problem_statement=statement, **fields)

    def _check_failures(
        self,
        lists: OutcomeLists,
        buggy_run: EvaluationRun,
        bugs: Sequence[DetectedBug],
        hidden: Collection[str],
        own: OwnChange | None,
    ) -> Reason | None:
        """Return why the tests that fail with some bugs in the task's own image give no task; None if they do.

        Args:
            lists: lists of the task.
            buggy_run: run with the bugs.
            bugs: the bugs.
            hidden: test files that are not in the agent's tree.
            own: the change's own part of the task, if any.
        """
        failing = _list_failing(lists, own)
        # Together, bugs may hide each other: each must still be detected by a test of its own.
        own_tests = list_own_tests(bugs)
        if any(not failing & tests for tests in own_tests):
            return Reason.BUGS_DO_NOT_COMBINE
        asserting = {test for test, kind in lists.fail_to_pass if kind is FailureKind.ASSERTION}
        if any(not asserting & tests for tests in own_tests):
            return Reason.NO_ASSERTION_FAILS
        # The agent sees all other test files, in which no test may fail.
        if not {test.partition("::")[0] for test in failing} <= set(hidden):
            return Reason.NOT_STABLE
        return Reason.FURTHER_TESTS_FAIL if own is None and self._find_visible_failures(buggy_run, hidden) else None

    def _find_earlier_runs(self, bugs: Sequence[DetectedBug], hidden: Collection[str]) -> EarlierRuns:
        """Return the runs of the base tree, and that of the tree with the bug where the task has no other.

        Tests that the run with the bug left out do not execute its code, so their outcomes are those of the base tree.
        """
        base = self.search.stable_report
        buggy = None
        if len(bugs) == 1:
            buggy = replace(base, outcomes={**base.outcomes, **bugs[0].report.outcomes})
        return EarlierRuns(
            base=base,
            buggy=buggy,
            seconds=self.search.require_base_result().exec_result.seconds,
            collects_canaries=self.search.collects_canaries(hidden),
            memory=self.memory,
            foreseen=self.list_foreseen(),
        )

    def _find_visible_failures(self, buggy_run: EvaluationRun, hidden: Collection[str]) -> list[TestId]:
        """Return tests of the agent's tree that fail with the bug, though they always pass without it."""
        passing = list_passing(self.search.stable_report)
        report = buggy_run.report
        return [
            test
            for test in report.outcomes
            if test in passing and test.partition("::")[0] not in hidden and report.has_failed(test)
        ]

    def _get_fields(self, evidence: InjectionEvidence, patches: InjectionPatches) -> dict[str, object]:
        """Return the fields that differ from those of the change's own tasks."""
        artifacts, controls = self.search.services.artifacts, evidence.controls
        return {
            "hints": "",
            "setup_patch": artifacts.put(patches.setup_patch),
            "gold_patch": artifacts.put(patches.gold_patch),
            "test_patch": artifacts.put(patches.test_patch),
            **controls.make_fields(artifacts),
            "FAIL_TO_PASS": evidence.lists.fail_to_pass,
            "PASS_TO_PASS": evidence.lists.pass_to_pass,
            "eval_script": artifacts.put_text(evidence.script),
            "image": evidence.image.name,
            "image_digest": evidence.image.digest,
            "test_seconds": evidence.test_seconds,
            "published": None,
        }

    def _describe_injection(self, bug: DetectedBug) -> Injection:
        """Return the record of how a bug was made, and where."""
        mutation = bug.mutation
        return Injection(
            path=mutation.path,
            function=self.functions.find_name(mutation.path, mutation.line),
            operator=mutation.operator,
            line=mutation.line,
            detail=mutation.detail,
        )

    def _write_statement(
        self, evidence: InjectionEvidence, tests: Sequence[TestId], bugs: Sequence[DetectedBug], gold: bytes
    ) -> str | None:
        """Return a statement by the model, else by the template; None where both would leak the patch."""
        candidate = self.search.lineage.candidate
        failures = failure_statement.collect_failures(
            tests,
            evidence.buggy_run.report,
            lambda path: self.repository.read_file(candidate.base_commit, path),
            evidence.buggy_run.result.log,
        )
        failures = failure_statement.order_failures(failures, [bug.failing_tests for bug in bugs])
        if self.bug_writer is not None:
            text = self.bug_writer.write_statement(candidate.repo, failures, bugs=len(bugs), gold=gold)
            if text is not None:
                return text
        return failure_statement.write_statement(
            candidate.repo, candidate.language, failures, bugs=len(bugs), gold=gold
        )


def _list_failing(lists: OutcomeLists, own: OwnChange | None) -> frozenset[TestId]:
    """Return the FAIL_TO_PASS tests, without those of the change's own part."""
    return frozenset(test for test, _ in lists.fail_to_pass) - (own.fail_to_pass if own else frozenset())


def list_own_tests(bugs: Sequence[DetectedBug]) -> list[set[TestId]]:
    """Return, for each bug, the tests that fail by an assertion with it, and pass with all of the others."""
    return [
        set(bug.asserting_tests).difference(*(other.failing_tests for other in bugs if other is not bug))
        for bug in bugs
    ]
