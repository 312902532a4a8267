"""Removal and rebuilding: a function, class or small module is removed, to be written again for the tests that need it.

The agent's tree is the base commit with stubs in place of the removed code and without the test files that fail then;
these are the hidden tests. A removal is kept when some tests fail with it in every run while others still pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from backends.services import Services
from derivers.base import FewerTasks, KindRejection, build_task, count_wanted, get_next_number
from derivers.injected import search as bugs
from derivers.injected.evidence import EarlierRuns, InjectionEvidence, verify_injection
from derivers.injected.failure_statement import collect_failures, order_failures
from derivers.injected.patches import InjectionPatches, build_injection_patches
from derivers.rebuild.agent_tree import RemainingLines, find_remaining_lines
from derivers.rebuild.search import DetectedRemoval, Reason, RemovalSearch, convert_reason
from derivers.rebuild.selection import select_removals
from derivers.rebuild.statement import write_statement
from derivers.search_progress import load_progress
from evaluation.controls.memory import ControlMemory
from evaluation.lists import OutcomeLists
from evaluation.runner.evaluator import EvaluationRun
from taskdb.records import Kind, Task, TestId, TestOrigin
from taskdb.records.lineage import Lineage

__all__ = ["Reason", "derive_rebuild"]

MAX_TRIED_REMOVALS = 12
"""Removals that are tried for a task of a change; half as many for each further task."""


def derive_rebuild(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return tasks of removed code in the base tree of a change with an environment.

    They are `rebuilt_per_change` tasks, or as many as `per_environment` still lacks, or `lineage.step` of these. The
    change itself may be rejected.

    Raises:
        Transient: engine, disk or network failed.
    """
    wanted = count_wanted(lineage, services, services.settings.derive.rebuilt_per_change)
    if wanted < 1:
        return KindRejection(Reason.ENOUGH_TASKS, f"the environment has given {len(lineage.existing)} tasks")
    progress = load_progress(lineage, services)
    candidate, environment = lineage.candidate, lineage.require_environment()
    repository = services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
    base, passing = bugs.BugSearch.open_base(lineage, services, repository, progress.base)
    if len(passing) < 2:
        return KindRejection(Reason.NO_PASSING_TESTS, base.describe_passing(passing))
    base_result = base.require_base_result()
    removals = select_removals(candidate, repository, base_result.covered_lines, base.test_files)
    if not removals:
        return KindRejection(Reason.NO_REMOVABLE_CODE, "no source file that tests execute has a function to remove")
    limits = services.test_limits(environment.plan.language)
    limits = replace(limits, seconds=bugs.compute_timeout(base, base_result.test_seconds))
    # Removed code may make callers wait for ever, so the limit follows from the measured time of the base run.
    with services.sandbox.open_pool(environment.image, limits=limits) as pool:
        base.pool = pool
        search = RemovalSearch(base=base, repository=repository, passing=passing)
        search.continue_from(progress)
        known = [services.artifacts.get(task.gold_patch) for task in lineage.existing]
        # Of all steps of a search; without steps of this call.
        n_wanted = progress.n_wanted if services.settings.derive.per_environment else wanted
        limit = MAX_TRIED_REMOVALS + MAX_TRIED_REMOVALS // 2 * (n_wanted - 1)
        builder = RebuildTaskBuilder(search=search, stored_memory=progress.state.get("controls"))
        tasks = builder.build_tasks(search.detect(removals, limit, known), wanted)
    if len(tasks) == wanted:
        progress.state["controls"] = builder.memory.list_fields()
        progress.base, progress.tally, progress.tried = base_result, Counter(search.tally), search.tried
        progress.seconds = base.elapsed
        return progress.make_step(tasks)
    rest = KindRejection(*search.explain_rejection())
    return FewerTasks(tasks, rest) if tasks else rest


@dataclass(frozen=True, kw_only=True)
class RebuildTaskBuilder:
    """Builds tasks from detected removals."""

    search: RemovalSearch
    stored_memory: Mapping[str, Any] | None = None
    """Fields of the memory after an earlier step; None for a search that begins."""

    @cached_property
    def memory(self) -> ControlMemory:
        """Values of tests and their results in runs: with the gold patch every task has the tree of the base."""
        commit = self.lineage.candidate.base_commit
        return ControlMemory.share_tree(self.search.repository, commit, self.search.passing, self.stored_memory)

    @property
    def lineage(self) -> Lineage:
        """The change whose base tree the tasks start from."""
        return self.search.base.lineage

    @property
    def services(self) -> Services:
        """Sandbox, artifacts and builder of images."""
        return self.search.base.services

    def build_tasks(self, detected: Iterable[DetectedRemoval], wanted: int) -> list[Task]:
        """Return at most `wanted` tasks, no two with the same failing tests; other removals are counted in the tally.

        Their numbers follow those of the tasks that the environment has given before.
        """
        existing = self.lineage.existing
        seen = {frozenset(test for test, _ in task.FAIL_TO_PASS) for task in existing}
        number = get_next_number(self.lineage)
        tasks: list[Task] = []
        for item in detected:
            is_new = frozenset(item.failing_tests) not in seen
            task = self._build_task(item, number) if is_new else Reason.SAME_TESTS_FAIL
            if isinstance(task, Task) and frozenset(test for test, _ in task.FAIL_TO_PASS) in seen:
                task = Reason.SAME_TESTS_FAIL
            if isinstance(task, Reason):
                self.search.tally[task] += 1
                continue
            number += 1
            seen |= {frozenset(item.failing_tests), frozenset(test for test, _ in task.FAIL_TO_PASS)}
            tasks.append(task)
            if len(tasks) == wanted:
                break
        return tasks

    def _build_task(self, item: DetectedRemoval, number: int) -> Task | Reason:
        """Return the task of a removal, or why it gives none."""
        base = self.search.base
        hidden = sorted({test.partition("::")[0] for test in item.failing_tests})
        commit = self.lineage.candidate.base_commit
        patches = build_injection_patches(self.search.repository, commit, [item.removal.patch], hidden)
        remaining = find_remaining_lines(self.search.repository, commit, patches)
        if remaining.copy:
            return Reason.COPY_IN_TREE

        def check(lists: OutcomeLists, _: EvaluationRun) -> bugs.Reason | None:
            # The agent sees all other test files, in which no test may fail.
            is_hidden = {test.partition("::")[0] for test, _ in lists.fail_to_pass} <= set(hidden)
            return None if is_hidden else bugs.Reason.FURTHER_TESTS_FAIL

        earlier = EarlierRuns(
            base=base.stable_report,
            buggy=item.report,
            seconds=base.require_base_result().exec_result.seconds,
            collects_canaries=base.collects_canaries(hidden),
            memory=self.memory,
        )
        evidence = verify_injection(
            self.lineage, self.services, patches, hidden=hidden, files=base.files, earlier=earlier, check=check
        )
        if isinstance(evidence, bugs.Reason):
            return convert_reason(evidence)
        base.note_canaries(hidden, evidence.has_canaries)
        failing = sorted(test for test, _ in evidence.lists.fail_to_pass)
        statement = self._write_statement(item, evidence, failing, patches, remaining)
        if statement is None:
            return Reason.STATEMENT_LEAKS
        return self._make_task(evidence, patches, number, statement)

    def _write_statement(
        self,
        item: DetectedRemoval,
        evidence: InjectionEvidence,
        failing: Sequence[TestId],
        patches: InjectionPatches,
        remaining: RemainingLines,
    ) -> str | None:
        candidate, repository = self.lineage.candidate, self.search.repository
        tests = collect_failures(
            failing, evidence.buggy_run.report, lambda path: repository.read_file(candidate.base_commit, path)
        )
        return write_statement(
            item.removal,
            candidate.language,
            order_failures(tests, []),
            gold=patches.gold_patch,
            known_lines=remaining.known,
        )

    def _make_task(self, evidence: InjectionEvidence, patches: InjectionPatches, number: int, statement: str) -> Task:
        """Return the task. Nothing in it follows from the verification of the change, which may be missing."""
        artifacts = self.services.artifacts
        return build_task(
            self.lineage,
            Kind.REBUILD,
            number,
            problem_statement=statement,
            hints="",
            setup_patch=artifacts.put(patches.setup_patch),
            gold_patch=artifacts.put(patches.gold_patch),
            test_patch=artifacts.put(patches.test_patch),
            **evidence.controls.make_fields(artifacts),
            FAIL_TO_PASS=evidence.lists.fail_to_pass,
            PASS_TO_PASS=evidence.lists.pass_to_pass,
            eval_script=artifacts.put_text(evidence.script),
            image=evidence.image.name,
            image_digest=evidence.image.digest,
            test_seconds=evidence.test_seconds,
            tests=TestOrigin.HUMAN,
            published=None,
        )
