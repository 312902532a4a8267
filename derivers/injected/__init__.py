"""Injected bugs: a fault is put into code that passing tests execute, to be found from the tests that fail then.

The agent's tree is the base commit with the bug and without the test files that fail; these are the hidden tests. A bug
is kept when some tests fail with it in every run while others still pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from backends.git import GitError, GitRepository
from backends.services import Services
from derivers.base import FewerTasks, KindRejection, build_task
from derivers.bugfix import derive_bugfix
from derivers.feature import derive_feature
from derivers.injected import bug_sites, failure_statement
from derivers.injected.bug_writer import BugWriter
from derivers.injected.evidence import InjectionEvidence, OwnChange, verify_injection
from derivers.injected.patches import InjectionPatches, build_injection_patches
from derivers.injected.search import BugSearch, DetectedBug, Reason, compute_timeout, find_hideable_files
from derivers.statements import render_template
from derivers.structure.definitions import find_enclosing_definition
from evaluation.reports.coverage import CoveredLines
from mutation import Mutation, select_diverse
from taskdb.records import Injection, Kind, Task, TestId
from taskdb.records.lineage import Lineage

__all__ = ["Reason", "derive_injected"]

MAX_TEST_RUNS = 20
"""Approximate test runs for a change: the whole suite is run where the time budget allows so many runs of it."""
POOL_SIZE = 40
"""Mutants among which bugs are tried until enough are detected."""


def derive_injected(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return `injected_per_change` tasks with `injected_bugs` bugs each, in the base tree of a verified change.

    Then `injected_on_top` tasks that consist of a further bug and the change's own bug fix or feature.

    Raises:
        Transient: engine, disk or network failed.
    """
    candidate, environment = lineage.candidate, lineage.require_environment()
    repository = services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
    hideable = find_hideable_files(entry.path for entry in repository.ls_tree(candidate.base_commit))
    files = _select_test_files(lineage, services, hideable)
    with services.sandbox.open_pool(environment.image, limits=services.test_limits(environment.plan.language)) as pool:
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
    limits = replace(
        services.test_limits(environment.plan.language),
        seconds=compute_timeout(search, search.base_result.test_seconds),
    )
    # A bug may make the tests run for ever, so the limit follows from the measured time of the base run.
    with services.sandbox.open_pool(environment.image, limits=limits) as pool:
        search.pool = pool
        detected = search.detect_bugs(bugs, contents.__getitem__, passing)
        builder = InjectedTaskBuilder(search=search, repository=repository, bug_writer=bug_writer, contents=contents)
        tasks = builder.build_tasks(detected, _find_own_change(lineage, services))
    rest = KindRejection(*search.explain_rejection())
    return FewerTasks(tasks, rest) if tasks else rest


def _select_test_files(lineage: Lineage, services: Services, hideable: frozenset[str]) -> tuple[str, ...]:
    """Return the test files to run: empty, for the whole suite, where time allows; else those of the verification."""
    environment = lineage.require_environment()
    seconds, limit = environment.test_seconds, services.test_limits(environment.plan.language).seconds
    if seconds * MAX_TEST_RUNS <= services.settings.budget.seconds and seconds <= limit / 2:
        return ()
    verified = lineage.verification.eval_files if lineage.verification else ()
    chosen = verified or lineage.tests.files
    return tuple(sorted(hideable & set(chosen)))


def _collect_bugs(
    lineage: Lineage, bug_writer: BugWriter | None, contents: Mapping[str, bytes], covered: CoveredLines | None
) -> list[Mutation]:
    """Return bugs to try: those a model writes for the first file, if a model is configured, then mutants."""
    first = next(iter(contents), None)
    written: list[Mutation] = []
    if bug_writer is not None and first is not None:
        lines = bug_sites.select_lines(lineage.candidate, first, contents[first], covered)
        written = bug_writer.write_bugs(first, contents[first], lines)
    return [*written, *select_diverse(bug_sites.list_mutants(lineage.candidate, contents, covered), POOL_SIZE)]


def _find_own_change(lineage: Lineage, services: Services) -> OwnChange | None:
    """Return the change's own bug fix or feature, None where it is neither or no task with it is requested."""
    verification = lineage.verification
    if not services.settings.derive.injected_on_top or services.settings.derive.per_environment:
        return None
    if verification is None or lineage.rejected_by is not None or not verification.FAIL_TO_PASS:
        return None
    for derive in (derive_bugfix, derive_feature):
        result = derive(lineage, services)
        if not isinstance(result, KindRejection):
            tests = frozenset(test for test, _ in result[0].FAIL_TO_PASS)
            gold_patch = services.artifacts.get(result[0].gold_patch)
            return OwnChange(fail_to_pass=tests, gold_patch=gold_patch, statement=result[0].problem_statement)
    return None


@dataclass(frozen=True, kw_only=True)
class InjectedTaskBuilder:
    """Builds tasks from detected bugs."""

    search: BugSearch
    repository: GitRepository
    bug_writer: BugWriter | None
    contents: Mapping[str, bytes]
    """Files of the base tree into which bugs are injected."""

    def build_tasks(self, detected: Iterator[DetectedBug], own: OwnChange | None = None) -> list[Task]:
        """Return the tasks, each with bugs of its own; bugs that give none are counted in the tally.

        These are at most `injected_per_change` tasks of bugs alone, then `injected_on_top` with the change's own part.
        """
        settings, existing = self.search.services.settings.derive, self.search.lineage.existing
        wanted = settings.per_environment - len(existing) if settings.per_environment else settings.injected_per_change
        known = {frozenset(test for test, _ in task.FAIL_TO_PASS) for task in existing}
        detected = (bug for bug in detected if frozenset(bug.failing_tests) not in known)
        tasks = self._build_tasks(detected, wanted, settings.injected_bugs, n_before=len(existing))
        if own is not None and tasks:
            tasks += self._build_tasks(detected, settings.injected_on_top, 1, own, len(tasks))
        return tasks

    def _find_function(self, bug: DetectedBug) -> str:
        """Return the name of the function around a bug; the line's number where there is none."""
        path, line = bug.mutation.path, bug.mutation.line
        around = find_enclosing_definition(path, self.contents[path], line)
        return around or str(line)

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
            task = self._build_task(list(chosen.values()), n_before + len(tasks) + 1, own)
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
            place = bug.mutation.path, self._find_function(bug)
            if place not in used:
                chosen.setdefault(place, bug)
        return chosen

    def _build_task(self, bugs: Sequence[DetectedBug], number: int, own: OwnChange | None) -> Task | Reason:
        """Return the task of some bugs, or why they give none together."""
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
        evidence = verify_injection(
            lineage, services, patches, hidden=sorted({*hidden, *own_files}), files=files, own=own
        )
        if isinstance(evidence, Reason):
            return evidence
        failing = {test for test, _ in evidence.lists.fail_to_pass} - (own.fail_to_pass if own else frozenset())
        # Together, bugs may hide each other: each must still be detected by a test of its own.
        if any(not failing & set(bug.failing_tests) for bug in bugs):
            return Reason.BUGS_DO_NOT_COMBINE
        # The agent sees all other test files, in which no test may fail.
        if not {test.partition("::")[0] for test in failing} <= set(hidden):
            return Reason.NOT_STABLE
        statement = self._write_statement(evidence, sorted(failing), bugs, patches.gold_patch)
        if statement is None:
            return Reason.STATEMENT_LEAKS
        if own is not None:
            statement = render_template("combined/statement.md.j2", parts=[own.statement, statement])
        fields = self._get_fields(evidence, patches) | {"injections": tuple(map(self._describe_injection, bugs))}
        return build_task(lineage, Kind.INJECTED, number, problem_statement=statement, **fields)

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
            function=find_enclosing_definition(mutation.path, self.contents[mutation.path], mutation.line),
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
