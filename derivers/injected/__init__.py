"""Injected bugs: a fault is put into code that passing tests execute, to be found from the tests that fail then.

The agent's tree is the base commit with the bug and without the test files that fail; these are the hidden tests. A bug
is kept when some tests fail with it in every run while others still pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from backends.git import GitError, GitRepository
from backends.services import Services
from derivers.base import KindRejection, build_task
from derivers.injected import bug_sites, failure_statement
from derivers.injected.bug_writer import BugWriter
from derivers.injected.evidence import InjectionEvidence, verify_injection
from derivers.injected.patches import InjectionPatches, build_injection_patches
from derivers.injected.search import BugSearch, DetectedBug, Reason, compute_timeout, find_hideable_files
from derivers.mutation import Mutation, select_diverse
from evaluation.reports.coverage import CoveredLines
from taskdb.lineage import Lineage
from taskdb.records import Kind, Task

__all__ = ["Reason", "derive_injected"]

MAX_TEST_RUNS = 20
"""Approximate test runs for one change: the whole suite is run where the time budget allows so many runs of it."""
POOL_SIZE = 40
"""Mutants among which bugs are tried until enough are detected."""


def derive_injected(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return `injected_per_change` tasks with `injected_bugs` bugs each, in the base tree of a verified change.

    Raises:
        Transient: engine, disk or network failed.
    """
    candidate, environment = lineage.candidate, lineage.require_environment()
    repository = services.clones.open(candidate.source, candidate.repo)
    hideable = find_hideable_files(entry.path for entry in repository.ls_tree(candidate.base_commit))
    files = _select_test_files(lineage, services, hideable)
    with services.sandbox.open_pool(environment.image, limits=services.test_limits()) as pool:
        search = BugSearch(lineage=lineage, services=services, pool=pool, files=files, test_files=hideable)
        passing = search.run_base()
    if search.base_result is None or len(passing) < 2:
        return KindRejection(Reason.NO_PASSING_TESTS, f"{len(passing)} tests pass at the base commit, two are required")
    covered = search.base_result.covered_lines
    contents = bug_sites.select_files(candidate, repository, covered, passing)
    bug_writer = BugWriter.create(services)
    bugs = _collect_bugs(lineage, bug_writer, contents, covered)
    if not bugs:
        detail = f"no mutation operator applies to the covered lines of {len(contents)} files"
        return KindRejection(Reason.NO_MUTABLE_CODE, detail)
    limits = replace(services.test_limits(), seconds=compute_timeout(search, search.base_result.test_seconds))
    with services.sandbox.open_pool(environment.image, limits=limits) as pool:
        search.pool = pool
        detected = search.detect_bugs(bugs, contents.__getitem__, passing)
        builder = InjectedTaskBuilder(search=search, repository=repository, bug_writer=bug_writer)
        tasks = builder.build_tasks(detected)
    return tasks or KindRejection(*search.explain_rejection())


def _select_test_files(lineage: Lineage, services: Services, hideable: frozenset[str]) -> tuple[str, ...]:
    """Return the test files to run: empty, for the whole suite, where time allows; else those of the verification."""
    seconds, settings = lineage.require_environment().test_seconds, services.settings
    if seconds * MAX_TEST_RUNS <= settings.budget_seconds and seconds <= settings.test_timeout / 2:
        return ()
    chosen = lineage.require_verification().eval_files or lineage.candidate.test_files
    return tuple(sorted(hideable & set(chosen)))


def _collect_bugs(
    lineage: Lineage, bug_writer: BugWriter | None, contents: Mapping[str, bytes], covered: CoveredLines | None
) -> list[Mutation]:
    """Return bugs to try: those a model writes for the first file, if one is configured, then mutants."""
    first = next(iter(contents), None)
    written: list[Mutation] = []
    if bug_writer is not None and first is not None:
        lines = bug_sites.select_lines(lineage.candidate, first, contents[first], covered)
        written = bug_writer.write_bugs(first, contents[first], lines)
    return [*written, *select_diverse(bug_sites.list_mutants(lineage.candidate, contents, covered), POOL_SIZE)]


@dataclass(frozen=True, kw_only=True)
class InjectedTaskBuilder:
    """Builds tasks from detected bugs."""

    search: BugSearch
    repository: GitRepository
    bug_writer: BugWriter | None

    def build_tasks(self, detected: Iterator[DetectedBug]) -> list[Task]:
        """Return at most `injected_per_change` tasks; bugs that give none are counted in the search's tally."""
        settings = self.search.services.settings
        tasks: list[Task] = []
        while len(tasks) < settings.injected_per_change:
            bugs = list(islice(detected, settings.injected_bugs))
            if len(bugs) < settings.injected_bugs:
                break
            task = self._build_task(bugs, len(tasks) + 1)
            if isinstance(task, Reason):
                self.search.tally[task] += 1
            else:
                tasks.append(task)
        return tasks

    def _build_task(self, bugs: Sequence[DetectedBug], number: int) -> Task | Reason:
        """Return the task of some bugs, or why they give none together."""
        lineage, services = self.search.lineage, self.search.services
        hidden = sorted({test.partition("::")[0] for bug in bugs for test in bug.failing_tests})
        base_commit, bug_patches = lineage.candidate.base_commit, [bug.patch for bug in bugs]
        try:
            patches = build_injection_patches(self.repository, base_commit, bug_patches, hidden)
        except GitError:
            return Reason.BUGS_DO_NOT_COMBINE
        evidence = verify_injection(lineage, services, patches, hidden, self.search.files)
        if isinstance(evidence, Reason):
            return evidence
        failing = {test for test, _ in evidence.lists.fail_to_pass}
        if any(not failing & set(bug.failing_tests) for bug in bugs):
            return Reason.BUGS_DO_NOT_COMBINE
        if not {test.partition("::")[0] for test in failing} <= set(hidden):
            return Reason.NOT_STABLE
        statement = self._write_statement(evidence, bugs, patches.gold_patch)
        if statement is None:
            return Reason.STATEMENT_LEAKS
        fields = self._get_fields(evidence, patches)
        return build_task(lineage, Kind.INJECTED, number, problem_statement=statement, **fields)

    def _get_fields(self, evidence: InjectionEvidence, patches: InjectionPatches) -> dict[str, object]:
        """Return the fields that differ from those of the change's own tasks."""
        artifacts, controls = self.search.services.artifacts, evidence.controls
        return {
            "hints": "",
            "setup_patch": artifacts.put(patches.setup_patch),
            "gold_patch": artifacts.put(patches.gold_patch),
            "test_patch": artifacts.put(patches.test_patch),
            "control_patch": artifacts.put(controls.patch) if controls.confirmed else None,
            "controls": controls.confirmed,
            "FAIL_TO_PASS": evidence.lists.fail_to_pass,
            "PASS_TO_PASS": evidence.lists.pass_to_pass,
            "eval_script": artifacts.put_text(evidence.script),
            "image": evidence.image.name,
            "image_digest": evidence.image.digest,
            "test_seconds": evidence.test_seconds,
            "published": None,
        }

    def _write_statement(self, evidence: InjectionEvidence, bugs: Sequence[DetectedBug], gold: bytes) -> str | None:
        """Return a statement by the model, else by the template; None where both would leak the patch."""
        candidate = self.search.lineage.candidate
        tests = [test for test, _ in evidence.lists.fail_to_pass]
        failures = failure_statement.collect_failures(
            tests, evidence.buggy_run.report, lambda path: self.repository.read_file(candidate.base_commit, path)
        )
        failures = failure_statement.order_failures(failures, [bug.failing_tests for bug in bugs])
        if self.bug_writer is not None:
            text = self.bug_writer.write_statement(candidate.repo, failures, bugs=len(bugs), gold=gold)
            if text is not None:
                return text
        return failure_statement.write_statement(
            candidate.repo, candidate.language, failures, bugs=len(bugs), gold=gold
        )
