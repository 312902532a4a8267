"""Injected bugs: a fault is put into code that passing tests execute, to be found from the tests that fail then.

The agent's tree is the base commit with the bug and without the test files that fail; these are the hidden tests. A bug
is kept when some tests fail with it in every run, at least one of them by an assertion, while others still pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from backends.git import GitRepository
from backends.services import Services
from core.errors import InputError
from derivers.base import FewerTasks, KindRejection
from derivers.bugfix import derive_bugfix
from derivers.feature import derive_feature
from derivers.injected import bug_sites
from derivers.injected.bug_queue import BugQueue
from derivers.injected.bug_sites import FunctionMap, SiteLimits
from derivers.injected.bug_writer import BugWriter
from derivers.injected.environment_tasks import EnvironmentTasks
from derivers.injected.evidence import OwnChange
from derivers.injected.history_bugs import list_history_bugs
from derivers.injected.reach import TestGroup, TestReach, measure_reach
from derivers.injected.screening import MAX_BATCH_SECONDS, BugScreening
from derivers.injected.search import BugSearch, Reason, compute_timeout
from derivers.injected.search_inputs import RecentInputs, SearchInputs
from derivers.injected.search_steps import (
    add_groups,
    add_written_bugs,
    count_written_functions,
    list_written_bugs,
    read_groups,
    record_search,
    resume_search,
)
from derivers.injected.task_builder import InjectedTaskBuilder
from derivers.search_progress import SearchProgress, load_progress
from evaluation.reports.coverage import CoveredLines
from mutation import Mutation, select_diverse
from mutation.definitions import CodeDefinition
from taskdb.records import Task, TestId
from taskdb.records.lineage import Lineage

__all__ = ["Reason", "derive_injected"]

POOL_SIZE = 40
"""Mutants among which bugs are tried until enough are detected."""
TASKS_PER_BUDGET = 10
"""Tasks of an environment for which the time and token budget of a change is given once more."""
TASKS_PER_WRITTEN_FUNCTION = 5
"""Tasks of an environment for each function for which a model writes bugs."""


_RECENT_INPUTS = RecentInputs()


def derive_injected(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return tasks with bugs in the base tree of an environment.

    Where `per_environment` is set, these are as many as are missing to that number, or `lineage.step`; the tasks that
    the environment has given before are `lineage.existing`. Otherwise they are `injected_per_change` tasks with
    `injected_bugs` bugs each, then `injected_on_top` tasks that consist of a further bug and the verified change's own
    bug fix or feature.

    Raises:
        Transient: engine, disk or network failed.
    """
    settings = services.settings.derive
    missing = settings.per_environment - len(lineage.existing) if settings.per_environment else None
    if missing is not None and missing <= 0:
        return KindRejection(Reason.ENOUGH_TASKS, f"the environment has given {len(lineage.existing)} tasks")
    progress = load_progress(lineage, services)
    candidate = lineage.candidate
    repository = services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
    search, passing = BugSearch.open_base(lineage, services, repository, progress.base)
    if len(passing) < 2:
        return KindRejection(Reason.NO_PASSING_TESTS, search.describe_passing(passing))
    if missing is not None:
        return _derive_many(search, repository, passing, min(missing, lineage.step or missing), progress)
    return _derive_few(search, repository, passing)


def _derive_few(search: BugSearch, repository: GitRepository, passing: frozenset[TestId]) -> list[Task] | KindRejection:
    """Return the tasks of a change, each bug tried with the same test files."""
    lineage, services = search.lineage, search.services
    environment, base_result = lineage.require_environment(), search.require_base_result()
    covered = base_result.covered_lines
    contents = bug_sites.select_files(lineage.candidate, repository, covered, passing)
    bug_writer = BugWriter.create(services)
    bugs = _collect_bugs(lineage, bug_writer, contents, covered)
    if not bugs:
        detail = f"no mutation operator applies to the covered lines of {len(contents)} files"
        return KindRejection(Reason.NO_MUTABLE_CODE, detail)
    # A bug may make the tests run for ever, so the limit follows from the measured time of the base run.
    limits = replace(
        services.test_limits(environment.plan.language), seconds=compute_timeout(search, base_result.test_seconds)
    )
    with services.sandbox.open_pool(environment.image, limits=limits) as pool:
        search.pool = pool
        detected = search.detect_bugs(bugs, contents.__getitem__, passing)
        builder = InjectedTaskBuilder(
            search=search, repository=repository, bug_writer=bug_writer, functions=FunctionMap(contents)
        )
        tasks = builder.build_tasks(detected, _find_own_change(lineage, services))
    rest = KindRejection(*search.explain_rejection())
    return FewerTasks(tasks, rest) if tasks else rest


def _derive_many(
    search: BugSearch, repository: GitRepository, passing: frozenset[TestId], number: int, progress: SearchProgress
) -> list[Task] | KindRejection:
    """Return at most `number` tasks of an environment, each bug tried with the test files that execute its code.

    Args:
        search: the search, after its base run.
        repository: repository that contains the base commit.
        passing: tests that pass in each run without a bug.
        number: number of tasks of this step.
        progress: results of earlier steps.
    """
    lineage, services, base_result = search.lineage, search.services, search.require_base_result()
    search.continue_from(progress, math.ceil(progress.n_wanted / TASKS_PER_BUDGET))
    inputs = _RECENT_INPUTS.take(lineage.progress) or _read_inputs(search, repository, passing, progress.target)
    bug_writer = BugWriter.create(services, math.ceil(number / TASKS_PER_BUDGET))
    _write_further_bugs(bug_writer, inputs, search, number, progress)
    bugs = chain(inputs.history_bugs, list_written_bugs(progress), inputs.mutants)
    used = [injection for task in lineage.existing for injection in task.injections]
    queue = BugQueue(bugs, inputs.functions, used, frozenset(progress.tried))
    if not queue and not progress.tried:
        detail = f"no mutation operator applies to the covered lines of {len(inputs.contents)} files"
        return KindRejection(Reason.NO_MUTABLE_CODE, detail)
    whole = TestGroup(
        files=search.files,
        passing=passing,
        covered=base_result.covered_lines,
        seconds=base_result.exec_result.seconds,
    )
    reach = _find_reach(search, whole, inputs.functions, progress)
    environment = lineage.require_environment()
    series_limits = replace(services.test_limits(environment.plan.language), seconds=MAX_BATCH_SECONDS)
    with services.sandbox.open_pool(environment.image, limits=series_limits) as series_pool:
        search.pool = series_pool
        screening = BugScreening(search=search, queue=queue, reach=reach, whole=whole, contents=inputs.contents)
        builder = InjectedTaskBuilder(
            search=search,
            repository=repository,
            bug_writer=bug_writer,
            functions=inputs.functions,
            known_memory=inputs.memory,
            stored_memory=progress.state.get("controls"),
            list_foreseen=screening.list_failing_sets,
        )
        environment_tasks = EnvironmentTasks(screening=screening, builder=builder)
        resume_search(progress, screening, environment_tasks)
        tasks = environment_tasks.build_tasks(number, progress.n_wanted)
    if len(tasks) < number:
        rest = KindRejection(*search.explain_rejection())
        return FewerTasks(tasks, rest) if tasks else rest
    progress.base, progress.tally = base_result, Counter(search.tally)
    progress.seconds = search.elapsed
    record_search(progress, screening, environment_tasks)
    progress.state["controls"] = builder.memory.list_fields()
    step = progress.make_step(tasks)
    if lineage.wanted is not None and lineage.wanted > number:
        _RECENT_INPUTS.keep(step.progress, replace(inputs, memory=builder.memory))
    return step


def _read_inputs(search: BugSearch, repository: GitRepository, passing: frozenset[TestId], target: int) -> SearchInputs:
    """Return the files and bugs of an environment. `target`: number of tasks that it is to give in all."""
    candidate, covered = search.lineage.candidate, search.require_base_result().covered_lines
    limits = SiteLimits.for_tasks(target)
    contents = bug_sites.select_files(candidate, repository, covered, passing, limits)
    functions = FunctionMap(contents)
    return SearchInputs(
        contents=contents,
        functions=functions,
        history_bugs=list(_list_history_bugs(search.lineage, search.services, contents, functions)),
        mutants=bug_sites.list_mutants(candidate, contents, covered, limits),
    )


def _find_reach(search: BugSearch, whole: TestGroup, functions: FunctionMap, progress: SearchProgress) -> TestReach:
    """Return which test files execute which code: as an earlier step has measured it, or after running them."""
    groups = read_groups(progress)
    if groups is not None:
        return TestReach(groups=groups, functions=functions)
    environment = search.lineage.require_environment()
    limits = search.services.test_limits(environment.plan.language)
    open_pool = partial(search.services.sandbox.open_pool, environment.image, limits=limits)
    reach = measure_reach(open_pool, whole, functions, search.test_files, script=search.script, workdir=search.workdir)
    add_groups(progress, reach.groups)
    return reach


def _write_further_bugs(
    bug_writer: BugWriter | None, inputs: SearchInputs, search: BugSearch, number: int, progress: SearchProgress
) -> None:
    """Let the model, where one is configured, write bugs for some more functions; each step has its share of them."""
    if bug_writer is None:
        return
    covered = search.require_base_result().covered_lines
    sites = bug_sites.list_functions(search.lineage.candidate, inputs.contents, covered, inputs.functions)
    first = count_written_functions(progress)
    chosen = list(islice(sites, first, first + math.ceil(number / TASKS_PER_WRITTEN_FUNCTION)))
    add_written_bugs(progress, _write_bugs(bug_writer, inputs.contents, chosen), len(chosen))


def _list_history_bugs(
    lineage: Lineage, services: Services, contents: Mapping[str, bytes], functions: FunctionMap
) -> Iterable[Mutation]:
    """Return bugs that undo commits before the base; none without the clone of the source."""
    candidate = lineage.candidate
    try:
        history = services.clones.open_history(candidate.source, candidate.repo, candidate.base_commit)
    except InputError:
        return ()
    return list_history_bugs(history, candidate.base_commit, contents, functions)


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


def _write_bugs(
    bug_writer: BugWriter | None, contents: Mapping[str, bytes], sites: Iterable[tuple[str, CodeDefinition]]
) -> Iterator[Mutation]:
    """Yield bugs of a model for some functions, each with its file; none where no model is configured."""
    if bug_writer is None:
        return
    for path, definition in sites:
        lines = range(definition.first_line, definition.last_line + 1)
        yield from bug_writer.write_bugs(path, contents[path], lines, function=definition.name)


def _find_own_change(lineage: Lineage, services: Services) -> OwnChange | None:
    """Return the change's own bug fix or feature, None where it is neither or no task with it is requested."""
    verification = lineage.verification
    if not services.settings.derive.injected_on_top:
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
