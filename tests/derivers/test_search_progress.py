"""Progress of a search: what it holds after a step, and when a search starts from scratch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backends.services import Services
from core.config import Settings
from core.settings.group import replace_values
from derivers.base import build_task
from derivers.injected import search_inputs
from derivers.injected.bug_queue import BugQueue, make_key
from derivers.injected.bug_sites import FunctionMap
from derivers.injected.environment_tasks import EnvironmentTasks
from derivers.injected.search import BugSearch, DetectedBug
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
from derivers.rebuild import search as rebuild_search
from derivers.rebuild.removals import Level, Removal
from derivers.rebuild.search import RemovalSearch
from derivers.search_progress import SearchProgress, load_progress
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from mutation import Mutation
from taskdb.records import Kind
from taskdb.records.lineage import Lineage
from tests import records
from tests.derivers.injected.test_screening import BUGS, CODE, make_group, make_screening
from tests.derivers.injected.test_search import make_result

CANDIDATE = records.make_candidate(records.make_pull_request(1))
LINEAGE = Lineage(candidate=CANDIDATE, environment=records.make_environment(CANDIDATE))
TASKS = tuple(build_task(LINEAGE, Kind.INJECTED, number) for number in (1, 2))
REPORT = EvaluationReport(
    outcomes={
        "tests/test_f.py::test": Outcome(status=OutcomeStatus.FAILED, message="boom", by_assertion=True),
        "tests/test_g.py::test": Outcome(status=OutcomeStatus.PASSED),
    },
    uncollected={"tests/test_h.py": "SyntaxError"},
)


def make_services(per_environment: int = 9) -> Services:
    fakes: dict[str, Any] = {"sandbox": None, "clones": None, "artifacts": None}
    return Services(settings=replace_values(Settings(), {"per_environment": per_environment}), **fakes)


def make_progress() -> SearchProgress:
    """Return the progress of a search for seven tasks after its first step, which gave two."""
    progress = load_progress(replace(LINEAGE, wanted=7, step=2), make_services())
    assert (progress.target, progress.n_before, progress.n_wanted) == (7, 0, 7)
    covered = {"a.py": frozenset({1, 5})}
    progress.base = replace(make_result(), report=REPORT, covered_lines=covered, cpu_seconds=0.5)
    progress.tried, progress.tally, progress.seconds = ["k1", "k2"], Counter({"no-mutant-detected": 1}), 12.5
    progress.state["n"] = 3
    return progress


def test_a_step_goes_on_with_what_the_one_before_has_stored() -> None:
    stored = make_progress().make_step(TASKS).progress
    read = load_progress(replace(LINEAGE, existing=TASKS, wanted=5, step=2, progress=stored), make_services())
    assert (read.target, read.n_before, read.n_wanted) == (7, 0, 7)
    assert (read.tried, read.tally, read.seconds) == (["k1", "k2"], {"no-mutant-detected": 1}, 12.5)
    assert read.state == {"n": 3}
    assert read.base is not None
    assert (read.base.report, read.base.covered_lines) == (REPORT, {"a.py": frozenset({1, 5})})
    assert (read.base.exec_result.seconds, read.base.test_seconds, read.base.cpu_seconds) == (1.0, 1.0, 0.5)
    assert read.to_bytes() == stored, "a step without news changes nothing"


def test_for_another_number_of_tasks_nothing_is_tried_again_and_budgets_start_from_zero() -> None:
    stored = make_progress().to_bytes()
    read = load_progress(replace(LINEAGE, existing=TASKS, wanted=18, progress=stored), make_services())
    assert (read.target, read.n_before, read.n_wanted) == (20, 2, 18)
    assert (read.tried, read.tally, read.seconds) == (["k1", "k2"], {}, 0.0)


@pytest.mark.parametrize("stored", [b"", b"torn", make_progress().to_bytes()[:-3]])
def test_without_progress_that_can_be_read_a_search_starts_from_scratch(stored: bytes) -> None:
    read = load_progress(replace(LINEAGE, existing=TASKS, wanted=5, progress=stored), make_services())
    assert read == SearchProgress(target=7, n_before=2)


def test_progress_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = make_progress().to_bytes()
    monkeypatch.setattr("derivers.search_progress.VERSION", 2)
    assert load_progress(replace(LINEAGE, wanted=7, progress=stored), make_services()).tried == []


def test_bugs_that_wait_are_those_of_the_next_step() -> None:
    def make_bug(number: int, *failing: str) -> DetectedBug:
        asserting = frozenset(failing[:1])
        return DetectedBug(
            mutation=BUGS[number], patch=b"", failing_tests=failing, asserting_tests=asserting, report=REPORT
        )

    progress, screening = make_progress(), make_screening(BUGS)
    tasks = EnvironmentTasks(screening=screening, builder=cast("Any", None))
    screening.tried += [make_key(bug) for bug in screening.queue.take(2)]
    screening.detected.append(make_bug(0, "tests/test_f.py::test", "tests/test_g.py::test"))
    tasks.waiting.append(make_bug(1, "tests/test_g.py::test"))
    tasks.n_unforeseen = 1
    screening.use_whole_suite()
    record_search(progress, screening, tasks)
    read = load_progress(replace(LINEAGE, wanted=7, progress=progress.to_bytes()), make_services())
    again = make_screening([])
    again.queue = BugQueue(BUGS, FunctionMap({"a.py": CODE}), (), frozenset(read.tried))
    resumed = EnvironmentTasks(screening=again, builder=cast("Any", None))
    resume_search(read, again, resumed)
    assert again.queue.take(9) == [BUGS[2]]
    assert again.tried == screening.tried
    for before, now in ((screening.detected, again.detected), (tasks.waiting, resumed.waiting)):
        assert [replace(bug, patch=b"") for bug in now] == list(before)
        assert all(bug.patch for bug in now)
    assert (resumed.n_unforeseen, again.uses_whole_suite, again.reach.groups) == (1, True, (again.whole,))


def test_a_bug_that_was_tried_counts_for_its_place_and_operator() -> None:
    functions = FunctionMap({"a.py": CODE})
    whole, rest = BugQueue(BUGS, functions), BugQueue(BUGS, functions, (), {make_key(BUGS[0])})
    assert whole.take(1) == [BUGS[0]]
    assert rest.take(9) == whole.take(9)
    first, *others = [
        Mutation(operator=operator, path="a.py", line=2, detail="", after=bytes([number]))
        for number, operator in enumerate(["one", "one", "other"])
    ]
    assert BugQueue([first, *others], functions, (), {make_key(first)}).take(1) == [others[1]]


def test_groups_and_written_bugs_are_stored() -> None:
    progress = make_progress()
    assert read_groups(progress) is None
    groups = (make_group("tests/test_f.py::test", 2), replace(make_group("tests/test_g.py::test", 6), covered=None))
    add_groups(progress, groups)
    written = replace(BUGS[0], after="\u00e9\n".encode("latin-1"))
    add_written_bugs(progress, [written], 2)
    add_written_bugs(progress, [BUGS[1]], 1)
    read = load_progress(replace(LINEAGE, wanted=7, progress=progress.to_bytes()), make_services())
    assert read_groups(read) == groups
    assert list_written_bugs(read) == [written, BUGS[1]]
    assert count_written_functions(read) == 3


def test_the_inputs_of_the_latest_searches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_inputs, "MAX_KEPT", 2)
    recent = RecentInputs()
    inputs = [
        SearchInputs(contents={}, functions=FunctionMap({}), history_bugs=[], mutants=BUGS[:number])
        for number in range(3)
    ]
    for number, kept in enumerate(inputs):
        recent.keep(bytes([number]), kept)
    assert recent.take(b"\0") is None
    assert recent.take(b"\1") is inputs[1]
    assert recent.take(b"\1") is None
    assert recent.take(b"\2") is inputs[2]


def test_removals_that_were_tried_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_removal(name: str) -> Removal:
        return Removal(level=Level.BODY, path="a.py", name=name, functions=(), helpers=(), patch=name.encode())

    tried: list[bytes] = []

    def run(*_: object, patch: bytes, **__: object) -> object:
        tried.append(patch)
        return make_result()

    monkeypatch.setattr(rebuild_search, "run_tests", run)
    base = SimpleNamespace(
        lineage=LINEAGE, pool=None, script="", test_files=frozenset(), started=100.0, is_out_of_time=lambda: False
    )
    search = RemovalSearch(base=cast(BugSearch, base), repository=cast("Any", None), passing=frozenset())
    search.continue_from(SearchProgress(target=9, n_before=0, seconds=40.0, tried=["a.py:body:a", "a.py:body:c"]))
    assert list(search.detect([make_removal(name) for name in "abcdef"], 4, [])) == []
    assert tried == [b"b", b"d"], "those of earlier steps count for the limit"
    assert base.started == 60.0
    assert search.tried == [f"a.py:body:{name}" for name in "acbd"]
