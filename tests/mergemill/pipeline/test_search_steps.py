"""A search for tasks of an environment in steps: what a kill costs, and that its tasks do not depend on one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from backends.services import Services
from core.errors import Transient
from derivers.base import FewerTasks, KindRejection, build_task, get_next_number
from derivers.search_progress import load_progress
from mergemill.pipeline.kinds import TASK_KINDS
from mergemill.pipeline.search_folder import FOLDER, SearchFolder
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage
from taskdb.store import Store
from tests import records
from tests.mergemill.pipeline.test_environment_tasks import KIND, EnvironmentDatabase, make_services
from tests.taskdb.lineages import make_url


@dataclass
class NumberedBugs:
    """Deriver that tries bugs by number: every third gives a task, whose statement names it."""

    bugs: int = 1000
    """Bugs that the environment has."""
    calls: list[tuple[int, int | None]] = field(default_factory=list)
    """Number of existing tasks and size of the step, for each call."""
    tried: list[int] = field(default_factory=list)
    """Bugs in the order in which they were tried."""
    interrupt: Callable[[int], None] = lambda _: None
    """Called with the number of the call."""

    def __call__(self, lineage: Lineage, services: Services) -> list[Task] | KindRejection:
        progress = load_progress(lineage, services)
        number = lineage.step or progress.target - len(lineage.existing)
        self.calls.append((len(lineage.existing), lineage.step))
        self.interrupt(len(self.calls))
        tasks: list[Task] = []
        while len(tasks) < number and len(progress.tried) < self.bugs:
            bug = len(progress.tried) + 1
            progress.tried.append(str(bug))
            self.tried.append(bug)
            if bug % 3 == 0:
                name = get_next_number(lineage) + len(tasks)
                tasks.append(build_task(lineage, lineage.kinds[0], name, problem_statement=f"Bug {bug}."))
        if len(tasks) == number:
            return progress.make_step(tasks)
        rest = KindRejection("no-mutant-detected", "no bug is left")
        return FewerTasks(tasks, rest) if tasks else rest


@dataclass
class StepDatabase(EnvironmentDatabase):
    """Database whose services keep progress in a folder of the test."""

    folder: Path = Path()

    def make_services(self) -> Services:
        """Return services with a store of their own."""
        return make_services(self.folder)

    def list_statements(self) -> dict[str, str]:
        """Return name of a task -> its statement and id."""
        rows = queries.list_tasks(self.store, TaskFilters())
        tasks = self.store.get_many(Task, [row["id"] for row in rows])
        return {task.name: f"{task.problem_statement} {task.id}" for task in tasks.values()}


@pytest.fixture
def make_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], StepDatabase]]:
    """Return a function that opens a database of one environment in a folder of that name."""
    stores = []

    def make(name: str) -> StepDatabase:
        (tmp_path / name).mkdir()
        store = Store.open(make_url(tmp_path / name))
        stores.append(store)
        database = StepDatabase(store, monkeypatch, folder=tmp_path / name)
        database.add(1)
        return database

    yield make
    for store in stores:
        store.close()


MakeDatabase = Callable[[str], StepDatabase]


def test_a_search_gives_its_tasks_in_steps_and_tries_nothing_twice(make_database: MakeDatabase) -> None:
    database, deriver = make_database("a"), NumberedBugs()
    run, short = database.derive(deriver, per_environment=25)
    assert deriver.calls == [(0, 10), (10, 10), (20, 5)]
    assert deriver.tried == list(range(1, 76))
    assert (run.exit_code, run.n_derived, short) == (0, 25, [])
    work = run.progress.work
    assert (work.n_read, work.n_finished, work.n_expected) == (3, 3, 3)
    database.derive(deriver, per_environment=25)
    assert len(deriver.calls) == 3, "a call after success does nothing"
    database.derive(deriver, per_environment=30)
    assert deriver.calls[3:] == [(25, 5)]
    assert deriver.tried == list(range(1, 91)), "a larger number goes on where the search ended"


def test_a_killed_search_loses_a_step_and_gives_the_same_tasks(make_database: MakeDatabase) -> None:
    whole, killed = make_database("whole"), make_database("killed")
    whole.derive(NumberedBugs(), per_environment=35)

    def stop(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    first = NumberedBugs(interrupt=stop)
    with pytest.raises(KeyboardInterrupt):
        killed.derive(first, per_environment=35)
    assert len(killed.list_statements()) == 20
    second = NumberedBugs()
    run, short = killed.derive(second, per_environment=35)
    assert (run.exit_code, short) == (0, [])
    assert second.calls == [(20, 10), (30, 5)]
    assert second.tried == list(range(61, 106)), "what was tried before the kill is not tried again"
    assert killed.list_statements() == whole.list_statements()


def test_a_kill_before_the_tasks_of_a_step_are_stored_repeats_that_step(
    make_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, killed = make_database("whole"), make_database("killed")
    whole.derive(NumberedBugs(), per_environment=20)
    add_stage_results = Store.add_stage_results

    def stop(store: Store, *results: object) -> object:
        if len(killed.list_statements()) == 10:
            raise KeyboardInterrupt
        return add_stage_results(store, *results)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "add_stage_results", stop)
    with pytest.raises(KeyboardInterrupt):
        killed.derive(NumberedBugs(), per_environment=20)
    monkeypatch.setattr(Store, "add_stage_results", add_stage_results)
    again = NumberedBugs()
    killed.derive(again, per_environment=20)
    assert again.tried == list(range(31, 61))
    assert killed.list_statements() == whole.list_statements()


def test_without_its_progress_a_search_starts_from_scratch(make_database: MakeDatabase) -> None:
    database = make_database("a")
    database.derive(NumberedBugs(), per_environment=10)
    for file in (database.folder / "store" / FOLDER).rglob("*.json"):
        file.write_text("torn", encoding="utf-8")
    again = NumberedBugs()
    run, _ = database.derive(again, per_environment=12)
    assert (run.exit_code, again.tried) == (0, [1, 2, 3, 4, 5, 6])


def test_an_environment_that_gives_less_than_a_step_is_searched_for_all_that_were_wanted(
    make_database: MakeDatabase,
) -> None:
    database, deriver = make_database("a"), NumberedBugs(bugs=50)
    run, (short,) = database.derive(deriver, per_environment=100)
    assert deriver.calls == [(0, 10), (10, 10)]
    assert (run.exit_code, short["tasks"], short["wanted"], short["reason"]) == (0, 16, 100, "no-mutant-detected")
    assert short["detail"] == "16 of 100 tasks: no bug is left"
    database.derive(deriver, per_environment=100)
    database.derive(deriver, per_environment=90)
    assert len(deriver.calls) == 2
    database.derive(deriver, per_environment=101)
    assert deriver.calls[2] == (16, 10)


def test_a_whole_step_is_no_end_of_a_search(make_database: MakeDatabase) -> None:
    database, deriver = make_database("a"), NumberedBugs(bugs=60)
    _, (short,) = database.derive(deriver, per_environment=40)
    assert deriver.calls == [(0, 10), (10, 10), (20, 10)]
    assert (short["tasks"], short["wanted"]) == (20, 40)


def test_a_search_that_is_retried_starts_from_scratch_and_goes_on_in_steps(make_database: MakeDatabase) -> None:
    database = make_database("a")
    database.derive(NumberedBugs(bugs=30), per_environment=35)
    deriver = NumberedBugs()
    database.derive(deriver, per_environment=35, retry=("no-mutant-detected",))
    assert deriver.calls == [(10, 10), (20, 10), (30, 5)]
    assert deriver.tried == list(range(1, 76)), "it begins with the first bug, and its steps try none again"
    database.derive(deriver, per_environment=35, retry=("no-mutant-detected",))
    assert len(deriver.calls) == 3


def test_an_environment_that_a_limit_ends_is_not_named_for_an_earlier_search(make_database: MakeDatabase) -> None:
    database = make_database("a")
    _, short = database.derive(NumberedBugs(bugs=10), per_environment=5)
    assert [row["tasks"] for row in short] == [3]
    run, short = database.derive(NumberedBugs(), per_environment=30, total=10)
    assert (run.n_derived, short) == (10, [])


def test_a_call_asks_for_no_more_than_its_total_in_steps(make_database: MakeDatabase) -> None:
    database, deriver = make_database("a"), NumberedBugs()
    run, _ = database.derive(deriver, per_environment=100, total=15)
    assert (deriver.calls, run.n_derived) == ([(0, 10), (10, 5)], 15)
    database.derive(deriver, per_environment=100, per_repository=22)
    assert deriver.calls[2:] == [(15, 7)]
    assert "(--per-repository 22)" in database.last_message


def test_a_failing_engine_ends_a_search_after_its_steps(make_database: MakeDatabase) -> None:
    def fail(number: int) -> None:
        if number > 1:
            raise Transient("the engine is gone")

    database = make_database("a")
    run, short = database.derive(NumberedBugs(interrupt=fail), per_environment=30)
    assert (run.exit_code, run.n_derived, short) == (Transient.exit_code, 10, [])
    again = NumberedBugs()
    database.derive(again, per_environment=30)
    assert again.calls == [(10, 10), (20, 10)]


def test_tasks_that_a_check_leaves_out_are_searched_for_in_the_next_step(
    make_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_: Lineage, task: Task, __: Services) -> KindRejection | None:
        return KindRejection("solution-line", "it shows") if task.problem_statement == "Bug 6." else None

    monkeypatch.setitem(TASK_KINDS, KIND, replace(TASK_KINDS[KIND], check=check))
    database, deriver = make_database("a"), NumberedBugs()
    _, short = database.derive(deriver, per_environment=12)
    assert (deriver.calls, short) == ([(0, 10), (9, 3)], [])
    assert len(database.list_statements()) == 12


def test_the_progress_after_the_last_two_steps_is_kept(tmp_path: Path) -> None:
    folder, tasks = SearchFolder(tmp_path), [_make_task(number) for number in range(4)]
    ids = [task.id for task in tasks]
    folder.save("e", Kind.INJECTED, [], ids[:1], b"one")
    folder.save("e", Kind.REBUILD, [], ids[:1], b"other")
    folder.save("e", Kind.INJECTED, ids[:1], ids[1:2], b"two")
    assert folder.load("e", Kind.INJECTED, tasks[:1]) == b"one"
    assert folder.load("e", Kind.INJECTED, tasks[1::-1]) == b"two"
    folder.save("e", Kind.INJECTED, ids[:2], ids[2:3], b"three")
    loaded: Mapping[int, bytes] = {number: folder.load("e", Kind.INJECTED, tasks[:number]) for number in range(5)}
    assert loaded == {0: b"", 1: b"", 2: b"two", 3: b"three", 4: b""}
    assert folder.load("e", Kind.REBUILD, tasks[:1]) == b"other"


def _make_task(number: int) -> Task:
    candidate = records.make_candidate(records.make_pull_request(1))
    environment = records.make_environment(candidate)
    return build_task(Lineage(candidate=candidate, environment=environment), KIND, number)
