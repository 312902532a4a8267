"""Tasks from environments: how many each is asked for, within which limits, and when a search is not repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.cluster.local import LocalCluster
from backends.services import Services
from core.config import Settings
from core.errors import InputError, Transient, UsageError
from core.settings.group import replace_values
from derivers.base import Deriver, FewerTasks, KindRejection, build_task
from mergemill.cli.pipeline.environment_options import select_kinds
from mergemill.execution.progress import JsonLinesProgress
from mergemill.pipeline.environment_tasks import EnvironmentRounds, EnvironmentTaskRequest
from mergemill.pipeline.kinds import TASK_KINDS
from mergemill.pipeline.pipeline import PipelineRun
from mergemill.pipeline.runs import process_environments
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Kind, Stage, Task
from taskdb.records.kinds import ENVIRONMENT_KINDS
from taskdb.records.lineage import Lineage
from taskdb.store import Store
from tests import records
from tests.mergemill.stages import FAST_RETRY
from tests.scopes import make_scope
from tests.taskdb.lineages import make_url
from tests.taskdb.test_environments import keep

KIND = Kind.INJECTED


@dataclass
class LimitedEnvironments:
    """Deriver that gets a limited number of tasks from each environment."""

    limits: Mapping[str, int]
    """Name of a change -> number of tasks that its environment has."""
    calls: list[tuple[str, int]] = field(default_factory=list)
    """Name of a change and number of tasks that were wanted, for each call."""
    failure: Exception | None = None

    def __call__(self, lineage: Lineage, services: Services) -> list[Task] | KindRejection:
        name, n_before = lineage.candidate.name, len(lineage.existing)
        wanted = services.settings.derive.per_environment - n_before
        wanted = wanted if lineage.step is None else min(wanted, lineage.step)
        self.calls.append((name, wanted))
        if self.failure is not None:
            raise self.failure
        n_new = min(wanted, self.limits[name] - n_before)
        tasks = [build_task(lineage, KIND, n_before + number) for number in range(1, n_new + 1)]
        rest = KindRejection("no-mutant-detected", "nine bugs were tried")
        if not tasks:
            return rest
        return tasks if n_new == wanted else FewerTasks(tasks, rest)


def make_services(folder: Path | None = None) -> Services:
    """Return services without an engine; `folder`: place of their store, None for one without progress of searches."""

    def refuse(key: str) -> Any:
        raise InputError(f"no artifact {key}")

    images = SimpleNamespace(inspect=lambda _: object(), hold=nullcontext)
    fakes: Any = {
        "sandbox": SimpleNamespace(images=images),
        "clones": SimpleNamespace(keep_tree=lambda *_: None),
        "artifacts": SimpleNamespace(get=refuse, get_text=refuse),
    }
    settings = replace_values(Settings(), {"store": (folder or Path("no-such-folder")) / "store"})
    return Services(settings=settings, **fakes)


@dataclass
class EnvironmentDatabase:
    """Database of built changes, and calls of `derive --from environments` over it."""

    store: Store
    monkeypatch: pytest.MonkeyPatch
    output: StringIO = field(default_factory=StringIO)

    def add(self, number: int, **fields: Any) -> str:
        """Add a built change and return its name; `fields`: of its environment, and `repo`."""
        pull = records.make_pull_request(number, **({"repo": fields.pop("repo")} if "repo" in fields else {}))
        candidate = records.make_candidate(pull)
        self.store.add_mined_changes((pull, candidate, 0.1))
        keep(self.store, Stage.BUILD, records.make_environment(candidate, **fields), number=number)
        return candidate.name

    def derive(
        self, deriver: Deriver, *, retry: tuple[str, ...] = (), **request: Any
    ) -> tuple[PipelineRun, list[dict[str, Any]]]:
        """Derive tasks; return the run, and the environments that gave fewer than wanted."""
        self.monkeypatch.setitem(TASK_KINDS, KIND, replace(TASK_KINDS[KIND], derive=deriver))
        progress = JsonLinesProgress(out=StringIO(), err=self.output)
        run = PipelineRun(
            self.store, self.make_services(), LocalCluster(workers=2), progress, 2, retry_policy=FAST_RETRY
        )
        scope = make_scope(kinds=(KIND,), retry=retry, stages=(Stage.DERIVE,))
        return run, process_environments(run, Stage.DERIVE, scope, EnvironmentTaskRequest(**request))

    def make_services(self) -> Services:
        """Return the services of the workers."""
        return make_services()

    @property
    def last_message(self) -> str:
        return self.output.getvalue().splitlines()[-1].removeprefix("mergemill: ")

    def count(self) -> dict[str, int]:
        """Return name of a change -> number of its tasks, each of another name."""
        names = [row["name"] for row in queries.list_tasks(self.store, TaskFilters())]
        assert len(names) == len(set(names))
        changes = [name.partition(".")[0] for name in names]
        return {change: changes.count(change) for change in sorted(changes)}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EnvironmentDatabase]:
    with Store.open(make_url(tmp_path)) as store:
        yield EnvironmentDatabase(store, monkeypatch)


def test_environments_give_the_tasks_that_are_wanted_and_are_asked_for_more_where_more_are(
    database: EnvironmentDatabase,
) -> None:
    first, second = database.add(1), database.add(2)
    deriver = LimitedEnvironments({first: 99, second: 99})
    run, short = database.derive(deriver, per_environment=3)
    assert (run.exit_code, run.n_derived, short) == (0, 6, [])
    assert database.count() == {first: 3, second: 3}
    assert sorted(deriver.calls) == [(first, 3), (second, 3)]
    run, _ = database.derive(deriver, per_environment=3)
    assert (run.n_new, len(deriver.calls)) == (0, 2)
    run, _ = database.derive(deriver, per_environment=5)
    assert run.n_derived == 4
    assert database.count() == {first: 5, second: 5}
    assert sorted(deriver.calls[2:]) == [(first, 2), (second, 2)]


def test_a_search_that_gave_fewer_is_named_and_not_repeated_until_more_are_wanted(
    database: EnvironmentDatabase,
) -> None:
    first, second = database.add(1), database.add(2)
    deriver = LimitedEnvironments({first: 2, second: 0})
    run, short = database.derive(deriver, per_environment=3)
    assert (run.exit_code, run.n_derived, len(deriver.calls)) == (0, 2, 2)
    common = {"kind": "injected", "wanted": 3, "reason": "no-mutant-detected"}
    lines = {
        row["environment"]: row | {"detail": row["detail"].partition(":")[0]}
        for row in sorted(short, key=lambda row: str(row["environment"]))
    }
    assert lines == {
        first: common | {"environment": first, "tasks": 2, "detail": "2 of 3 tasks"},
        second: common | {"environment": second, "tasks": 0, "detail": "0 of 3 tasks"},
    }
    run, short = database.derive(deriver, per_environment=3)
    assert (run.n_new, short, len(deriver.calls)) == (0, [], 2)
    assert database.last_message == (
        "2 environments gave fewer injected tasks than wanted before; --retry REASON searches again"
    )
    database.derive(deriver, per_environment=3, retry=("no-mutant-detected",))
    assert sorted(deriver.calls[2:]) == [(first, 1), (second, 3)]
    deriver.limits = {first: 9, second: 0}
    run, _ = database.derive(deriver, per_environment=4)
    assert (run.n_derived, database.count()) == (2, {first: 4})


def test_a_repository_has_no_more_tasks_than_its_limit_and_others_take_what_one_does_not_give(
    database: EnvironmentDatabase,
) -> None:
    names = [database.add(number) for number in range(1, 5)]
    other = database.add(5, repo="ada/other")
    limits = dict.fromkeys(names, 2) | {other: 99}
    deriver = LimitedEnvironments(limits)
    run, _ = database.derive(deriver, per_environment=4, per_repository=6)
    counted = database.count()
    assert counted.pop(other) == 4
    # The first environment was asked for four and the second for two; what the first did not give a third one gives.
    assert sorted(counted.values()) == [2, 2, 2]
    assert run.n_derived == 10
    assert "waiting because of limits: " in database.last_message
    assert "(--per-repository 6)" in database.last_message
    run, _ = database.derive(deriver, per_environment=4, per_repository=6)
    assert run.n_new == 0


def test_an_environment_is_asked_again_for_what_another_did_not_give(database: EnvironmentDatabase) -> None:
    database.add(1)
    database.add(2)
    states = database.store.find_environments(make_scope(kinds=(KIND,)), KIND)
    order = EnvironmentTaskRequest(per_environment=4).place
    first, second = [state.name for state in sorted(states, key=lambda state: order(state.environment))]
    deriver = LimitedEnvironments({first: 1, second: 99})
    database.derive(deriver, per_environment=4, per_repository=5)
    assert database.count() == {first: 1, second: 4}
    assert sorted(deriver.calls) == sorted([(first, 4), (second, 1), (second, 3)])


def test_environments_of_one_plan_have_no_more_tasks_than_the_limit_of_a_family(
    database: EnvironmentDatabase,
) -> None:
    plan = records.PLAN.model_copy(update={"system_packages": ("libffi-dev",)})
    names = [database.add(1), database.add(2), database.add(3, plan=type(plan)(**plan.model_dump()))]
    run, _ = database.derive(LimitedEnvironments(dict.fromkeys(names, 99)), per_environment=3, per_family=4)
    counted = database.count()
    assert counted.pop(names[2]) == 3
    assert sorted(counted.values()) == [1, 3]
    assert run.n_derived == 7


def test_a_call_derives_no_more_than_its_total(database: EnvironmentDatabase) -> None:
    names = [database.add(number) for number in range(1, 4)]
    deriver = LimitedEnvironments({name: number for number, name in enumerate(names, 1)})
    run, _ = database.derive(deriver, per_environment=3, total=5)
    assert run.n_derived == 5
    run, _ = database.derive(deriver, per_environment=3, total=5)
    assert (run.n_derived, sum(database.count().values())) == (1, 6)


def test_the_order_of_environments_follows_the_seed_and_not_the_others(database: EnvironmentDatabase) -> None:
    for number in range(1, 9):
        database.add(number)
    wanted = make_scope(kinds=(KIND,))

    def list_order(seed: int, *only: str) -> list[str]:
        rounds = EnvironmentRounds(
            store=database.store,
            services=make_services(),
            scope=replace(wanted, only=only),
            kind=KIND,
            request=EnvironmentTaskRequest(per_environment=1, seed=seed),
            count_left=lambda: None,
        )
        return [lineage.candidate.name for lineage in rounds.plan()]

    first = list_order(0)
    assert first == list_order(0)
    assert sorted(first) == sorted(list_order(1))
    assert first != list_order(1)
    assert list_order(0, *first[::2]) == first[::2]


def test_an_environment_whose_engine_fails_is_tried_once_and_stays_open(database: EnvironmentDatabase) -> None:
    name = database.add(1)
    deriver = LimitedEnvironments({name: 9}, failure=Transient("the engine is gone"))
    run, short = database.derive(deriver, per_environment=2)
    assert (run.exit_code, run.n_new, short) == (Transient.exit_code, 0, [])
    assert len(deriver.calls) == 2  # attempts of one step
    deriver.failure = None
    run, _ = database.derive(deriver, per_environment=2)
    assert (run.exit_code, database.count()) == (0, {name: 2})


def test_a_task_of_an_environment_descends_from_that_alone() -> None:
    pull = records.make_pull_request(1)
    candidate = records.make_candidate(pull, hints="see the fix")
    environment = records.make_environment(candidate)
    lineage = Lineage(candidate=candidate, environment=environment)
    verified = replace(lineage, verification=records.make_verification(environment))
    task = build_task(replace(verified, wanted=1), KIND, 1)
    assert task == build_task(lineage, KIND, 1)
    assert (task.parent, task.image, task.plan) == (environment.id, environment.image, environment.plan)
    assert build_task(verified, KIND, 1).parent == verified.require_verification().id


def test_issues_are_mirrored_only_on_request_where_no_model_is_configured() -> None:
    assert select_kinds(None, has_model=True) == ENVIRONMENT_KINDS
    assert select_kinds(None, has_model=False) == (Kind.INJECTED, Kind.REBUILD)
    assert select_kinds(tuple(Kind), has_model=False) == ENVIRONMENT_KINDS
    assert select_kinds([Kind.MIRRORED], has_model=False) == (Kind.MIRRORED,)
    with pytest.raises(UsageError, match="--kind bugfix: an environment alone gives no such task"):
        select_kinds([Kind.INJECTED, Kind.BUGFIX], has_model=True)
