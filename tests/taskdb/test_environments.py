"""Tasks of environments in the database: what an environment has given, and what it was searched for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from taskdb.environments import EnvironmentState
from taskdb.queries import derivation_counts
from taskdb.queries import tasks as queries
from taskdb.queries.lineages import add_lineage as add_records
from taskdb.queries.lineages import load_lineages
from taskdb.queries.pages import load_task_records
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Candidate, Environment, Kind, Stage, Task
from taskdb.records.work import StageResult
from taskdb.renewals import load_kinds
from taskdb.store import Store
from tests import records
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage

REASON = "no-fail-to-pass"


def keep(store: Store, stage: Stage, result: Any, kind: Kind | None = None, number: int = 1) -> None:
    name = f"ada__greet-{number}"
    store.add_stage_results(
        StageResult(stage=stage, result=result, source="git:greet", name=name, seconds=1.0, kind=kind)
    )


def add_rejected(store: Store, number: int = 1, **environment_fields: Any) -> tuple[Candidate, Environment]:
    """Add a change whose environment was built and whose tests do not show what it does."""
    pull = records.make_pull_request(number)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate, **environment_fields)
    store.add_mined_changes((pull, candidate, 0.1))
    keep(store, Stage.BUILD, environment, number=number)
    keep(store, Stage.VERIFY, records.make_rejection(environment, Stage.VERIFY, REASON), number=number)
    return candidate, environment


def add_tasks(store: Store, candidate: Candidate, environment: Environment, *numbers: int) -> list[Task]:
    """Add injected tasks of an environment, without certificates."""
    verification = records.make_verification(environment)
    tasks = [
        records.make_task(
            verification,
            candidate,
            parent=environment.id,
            kind=Kind.INJECTED,
            name=f"{candidate.name}.injected-{number}",
        )
        for number in numbers
    ]
    for task in tasks:
        keep(store, Stage.DERIVE, task, Kind.INJECTED)
    return tasks


def reject_search(store: Store, environment: Environment, wanted: int, reason: str = "no-mutant-detected") -> None:
    name = f"{environment.name}.injected-{wanted}"
    rejection = records.make_rejection(environment, Stage.DERIVE, reason, kind=Kind.INJECTED, name=name)
    keep(store, Stage.DERIVE, rejection, Kind.INJECTED)


def find(store: Store, **scope: Any) -> dict[str, EnvironmentState]:
    return {state.name: state for state in store.find_environments(make_scope(**scope), Kind.INJECTED)}


def test_a_rejected_change_with_an_environment_is_open_for_kinds_of_environments(db: str) -> None:
    with Store.open(db) as store:
        _, environment = add_rejected(store)
        wanted = (Kind.BUGFIX, Kind.INJECTED)
        (lineage,) = store.find_pending(Stage.DERIVE, make_scope(kinds=wanted))
        assert (lineage.environment, lineage.verification, lineage.wanted) == (environment, None, None)
        assert lineage.rejected_by is Stage.VERIFY
        rejection = records.make_rejection(environment, Stage.DERIVE, "no-mutable-code", kind=Kind.INJECTED)
        keep(store, Stage.DERIVE, rejection, Kind.INJECTED)
        assert list(store.find_pending(Stage.DERIVE, make_scope(kinds=wanted))) == []
        (row,) = derivation_counts.count_by_change(store)
        assert (row["rejected"], row["injected"]) == (f"verify {REASON}", "no-mutable-code")
        # The change itself ends with the reason of its verification.
        assert queries.compute_summary(store)["rejected"] == {REASON: 1}


def test_what_environments_have_given_and_were_searched_for(db: str) -> None:
    with Store.open(db) as store:
        candidate, environment = add_rejected(store)
        add_lineage(store, 2)
        add_lineage(store, 3, to=Stage.BUILD)
        pull = records.make_pull_request(4)
        store.add_mined_changes((pull, records.make_candidate(pull), 0.1))
        add_tasks(store, candidate, environment, *range(1, 12))
        reject_search(store, environment, 12)
        reject_search(store, environment, 9, "no-image")
        states = find(store)
        assert {name: (state.n_tasks, state.n_searched) for name, state in states.items()} == {
            "ada__greet-1": (11, 12),
            "ada__greet-2": (0, 0),
            "ada__greet-3": (0, 0),
        }
        assert (states["ada__greet-1"].reason, states["ada__greet-2"].reason) == ("no-image", None)
        assert list(find(store, only=["ada__greet-2"])) == ["ada__greet-2"]
        assert store.count_tasks_by_repository(Kind.INJECTED) == {"ada/greet": 11}
        assert store.count_tasks_by_environment(Kind.INJECTED, "ada/greet") == {environment.id: 11}
        lineage = store.load_environment(states["ada__greet-1"].change, Kind.INJECTED)
        assert lineage is not None
        assert [task.name.rpartition("-")[2] for task in lineage.existing] == [str(number) for number in range(1, 12)]
        assert (lineage.kinds, lineage.rejected_by) == ((Kind.INJECTED,), Stage.VERIFY)
        keep(store, Stage.CERTIFY, records.make_certificate(lineage.existing[0]), Kind.INJECTED)
        lineage = store.load_environment(states["ada__greet-1"].change, Kind.INJECTED)
        assert lineage is not None
        assert (len(lineage.existing), len(lineage.tasks)) == (11, 10)


def test_a_plain_rejection_of_a_kind_is_no_search_of_its_environment(db: str) -> None:
    with Store.open(db) as store:
        _, environment = add_rejected(store)
        rejection = records.make_rejection(environment, Stage.DERIVE, "no-mutable-code", kind=Kind.INJECTED)
        keep(store, Stage.DERIVE, rejection, Kind.INJECTED)
        assert (find(store)["ada__greet-1"].n_searched, find(store)["ada__greet-1"].reason) == (0, None)


def test_an_environment_is_reloaded_with_what_is_still_wanted(db: str) -> None:
    with Store.open(db) as store:
        candidate, environment = add_rejected(store)
        change = find(store)["ada__greet-1"].change
        lineage = store.load_environment(change, Kind.INJECTED)
        assert lineage is not None
        wanted = replace(lineage, wanted=3)
        (first, second) = add_tasks(store, candidate, environment, 1, 2)
        reloaded = store.reload_environment(wanted)
        assert reloaded is not None
        assert (reloaded.wanted, reloaded.tasks) == (1, (first, second))
        add_tasks(store, candidate, environment, 3)
        reloaded = store.reload_environment(wanted)
        assert reloaded is not None
        assert (reloaded.wanted, len(reloaded.tasks)) == (0, 3)
        for task in reloaded.tasks:
            keep(store, Stage.CERTIFY, records.make_certificate(task), Kind.INJECTED)
        assert store.reload_environment(wanted) is None


def test_a_step_that_is_stored_is_not_derived_again_after_a_reload(db: str) -> None:
    with Store.open(db) as store:
        candidate, environment = add_rejected(store)
        lineage = store.load_environment(find(store)["ada__greet-1"].change, Kind.INJECTED)
        assert lineage is not None
        step = replace(lineage, wanted=9, step=2, progress=b"progress")
        reloaded = store.reload_environment(step)
        assert reloaded is not None
        assert (reloaded.wanted, reloaded.step, reloaded.progress) == (9, 2, b"progress")
        tasks = add_tasks(store, candidate, environment, 1, 2)
        reloaded = store.reload_environment(step)
        assert reloaded is not None
        assert (reloaded.wanted, reloaded.tasks) == (0, tuple(tasks))


def test_tasks_of_an_environment_are_listed_and_their_change_stays_rejected(db: str) -> None:
    with Store.open(db) as store:
        candidate, environment = add_rejected(store)
        (task, other) = add_tasks(store, candidate, environment, 1, 2)
        keep(store, Stage.CERTIFY, records.make_certificate(task), Kind.INJECTED)
        keep(store, Stage.CERTIFY, records.make_rejection(other, Stage.CERTIFY, "gold-fails"), Kind.INJECTED)
        listed = {row["name"]: row["status"] for row in queries.list_tasks(store, TaskFilters())}
        assert listed == {task.name: "certified", other.name: "rejected"}
        (row,) = derivation_counts.count_by_change(store)
        assert (row["rejected"], row["injected"]) == (f"verify {REASON}", "certified, gold-fails")
        other_candidate, other_environment = add_rejected(store, 2)
        add_lineage(store, 3, task_fields={"kind": Kind.INJECTED, "name": "ada__greet-3.injected-1"})
        counted = {"kind": "injected", "changes": 1, "rejected": 1, "tasks": 2, "certified": 1}
        assert derivation_counts.count_of_environments(store) == [counted]
        add_tasks(store, other_candidate, other_environment, 1)
        assert derivation_counts.count_of_environments(store, ["git:greet"], "ada/greet") == [
            counted | {"changes": 2, "rejected": 2, "tasks": 3}
        ]
        assert derivation_counts.count_of_environments(store, ["git:other"], "ada/greet") == []
        funnel = {row["stage"]: row["rejected"] for row in queries.compute_funnel(store)}
        assert funnel["verify"] == {REASON: 2}
        change, report = queries.look_up_change(store, "ada__greet-1")
        assert change.name == candidate.name
        assert report["environment"]["tasks"] == {"injected": {"tasks": 2, "certified": 1}}
        assert [queries.resolve_change(store, key) for key in (task.id, environment.id)] == [change, change]


def test_a_task_of_an_environment_is_shown_and_exported_with_its_lineage(db: str, tmp_path: Path) -> None:
    with Store.open(db) as store:
        candidate, environment = add_rejected(store)
        (task,) = add_tasks(store, candidate, environment, 1)
        records_of_task = load_task_records(store, task)
        assert (records_of_task.environment, records_of_task.verification, records_of_task.candidate) == (
            environment,
            None,
            candidate,
        )
        (lineage,) = load_lineages(store, [task]).values()
        assert [type(record).__name__ for record in lineage] == ["PullRequest", "Candidate", "Environment"]
    with Store.open(f"sqlite:///{tmp_path}/other.db") as other:
        add_records(other, {record.id: record for record in (*lineage, task)})
        assert [row["name"] for row in queries.list_tasks(other, TaskFilters())] == [task.name]


def test_a_new_verification_replaces_the_tasks_of_the_change_and_none_of_its_environment(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store, task_fields={"kind": Kind.INJECTED, "name": "ada__greet-1.injected-1"})
        candidate = store.get(Candidate, task.candidate)
        environment = records.make_environment(candidate)
        (other,) = add_tasks(store, candidate, environment, 2)
        keep(store, Stage.CERTIFY, records.make_certificate(other), Kind.INJECTED)
        change = find(store)["ada__greet-1"].change
        with store.read_transaction() as connection:
            kinds, certified = load_kinds(connection, change, make_scope(kinds=tuple(Kind)).kinds)
    assert (kinds, certified) == ((Kind.INJECTED,), {task.name: Kind.INJECTED})
