"""The queue of kinds: what is asked of a change and when, what it gave, and which tasks belong together."""

from __future__ import annotations

from collections.abc import Sequence

from taskdb import families, queries, yields
from taskdb.chains import Finished, Scope
from taskdb.kinds import NEEDS
from taskdb.oracles import Writing
from taskdb.queries import Filters
from taskdb.records import Kind, Record, Stage, Task
from taskdb.store import Store
from taskdb.tags import ChangeKind
from tests import records
from tests.taskdb.chains import whole_chain

EVERY = tuple(Kind)


def kinds_of(store: Store, wanted: Sequence[Kind], **scope: object) -> dict[str, tuple[Kind, ...]]:
    """Name of each change that a stage can do something for -> the kinds that are open."""
    scoped = Scope(kinds=wanted, **scope)  # type: ignore[arg-type]
    return {lineage.candidate.name: lineage.kinds for lineage in store.open_chains(scoped)}


def keep(store: Store, stage: Stage, *made: Record, kind: Kind) -> None:
    for result in made:
        store.finish(
            Finished(stage=stage, result=result, source="git:greet", name="ada__greet-1", seconds=1, kind=kind)
        )


def test_every_kind_says_what_it_needs() -> None:
    assert set(NEEDS) == set(Kind)


def test_a_change_that_gave_all_that_is_asked_for_waits_for_nothing(db: str) -> None:
    with Store.open(db) as store:
        whole_chain(store)
        assert kinds_of(store, (Kind.BUGFIX,)) == {}
        assert kinds_of(store, (Kind.BUGFIX, Kind.FEATURE)) == {}  # a feature stands in a bug fix's place only


def test_another_kind_is_asked_later_and_only_once(db: str) -> None:
    with Store.open(db) as store:
        whole_chain(store)
        assert kinds_of(store, (Kind.TEST_WRITING,)) == {"ada__greet-1": (Kind.TEST_WRITING,)}
        (lineage,) = store.pending(Stage.DERIVE, Scope(kinds=(Kind.TEST_WRITING,)))
        refused = records.rejection(lineage.the_verdict, Stage.DERIVE, "no-mutants", kind=Kind.TEST_WRITING)
        keep(store, Stage.DERIVE, refused, kind=Kind.TEST_WRITING)
        assert kinds_of(store, (Kind.TEST_WRITING,)) == {}
        assert kinds_of(store, (Kind.TEST_WRITING,), retry=["no-mutants"]) == {"ada__greet-1": (Kind.TEST_WRITING,)}
        assert queries.summary(store)["certified"] == 1
        assert queries.summary(store)["tasks"] == {"bugfix": 1}
        assert yields.by_change(store)[0]["test-writing"] == "no-mutants"


def test_what_was_set_aside_waits_for_the_judge_when_asked_for(db: str) -> None:
    with Store.open(db) as store:
        whole_chain(store, to=Stage.VERIFY)
        (lineage,) = store.pending(Stage.JUDGE, Scope())
        verdict = records.verdict(lineage.the_verification, set_aside="message-not-stated")
        refused = records.rejection(verdict, Stage.DERIVE, "message-not-stated", kind=Kind.BUGFIX)
        store.add(verdict, refused)
        assert list(store.pending(Stage.JUDGE, Scope(retry=["flaky"]))) == []
        (lineage,) = store.pending(Stage.JUDGE, Scope(retry=["message-not-stated"]))
        assert (lineage.due, lineage.verdict) == (Stage.JUDGE, verdict)
        store.add(records.verdict(lineage.the_verification))
        assert kinds_of(store, (Kind.BUGFIX,)) == {"ada__greet-1": (Kind.BUGFIX,)}
        assert list(store.pending(Stage.JUDGE, Scope(retry=["message-not-stated"]))) == []


def test_a_task_that_was_made_waits_for_its_certificate(db: str) -> None:
    with Store.open(db) as store:
        first = whole_chain(store)
        names = [f"{first.name.removesuffix('bugfix')}injected-{n}" for n in (1, 2)]
        made = [first.model_copy(update={"kind": Kind.INJECTED, "name": name}) for name in names]
        keep(store, Stage.DERIVE, *(Task(**task.model_dump()) for task in made), kind=Kind.INJECTED)
        (lineage,) = store.open_chains(Scope(kinds=(Kind.INJECTED,)))
        assert [task.name for task in lineage.derived] == names
        assert lineage.kinds == ()
        keep(store, Stage.CERTIFY, records.certificate(lineage.derived[0]), kind=Kind.INJECTED)
        (lineage,) = store.open_chains(Scope())  # what was made is certified, whatever is to be made now
        assert [task.name for task in lineage.derived] == names[1:]
        assert list(store.open_chains(Scope(certified=(Kind.REVIEW,)))) == []
        assert yields.by_change(store)[0]["injected"] == "certified, derived"
        assert [row["kind"] for row in yields.by_kind(store)] == ["bugfix", "injected"]


def test_a_review_needs_no_environment_and_a_simulation_only_where_there_is_none(db: str) -> None:
    wanted = (Kind.REVIEW, Kind.SIMULATED)
    with Store.open(db) as store:
        whole_chain(store, 1)
        pull = records.pull_request(2)
        candidate = records.candidate(pull)
        store.mined((pull, candidate, 0.0))
        assert set(kinds_of(store, wanted)) == {"ada__greet-1", "ada__greet-2"}
        assert [it.candidate.name for it in store.pending(Stage.DERIVE, Scope(kinds=(Kind.SIMULATED,)))] == []
        refused = records.rejection(candidate, Stage.BUILD, "no-plan")
        store.finish(Finished(stage=Stage.BUILD, result=refused, source="git:greet", name=candidate.name, seconds=1))
        (lineage,) = store.pending(Stage.DERIVE, Scope(kinds=(Kind.SIMULATED,)))
        assert (lineage.candidate.name, lineage.stopped) == ("ada__greet-2", Stage.BUILD)


def test_performance_is_asked_only_of_changes_that_are_about_it(db: str) -> None:
    with Store.open(db) as store:
        whole_chain(store)
        assert kinds_of(store, (Kind.PERFORMANCE,)) == {}


def test_a_change_without_tests_waits_only_for_kinds_that_need_none(db: str) -> None:
    with Store.open(db) as store:
        pull = records.pull_request(1)
        candidate = records.candidate(pull, test_lines=0, test_files=(), kind=ChangeKind.PERFORMANCE)
        store.mined((pull, candidate, 0.0), tags=[records.tags(pull, ChangeKind.PERFORMANCE)])
        assert kinds_of(store, (Kind.BUGFIX, Kind.FEATURE, Kind.TEST_WRITING, Kind.COMBINED)) == {}
        assert kinds_of(store, EVERY) == {"ada__greet-1": (Kind.PERFORMANCE, Kind.INJECTED, Kind.REVIEW)}
        assert [it.candidate.name for it in store.pending(Stage.BUILD, Scope(kinds=(Kind.REVIEW,)))] == []
        assert [it.candidate.name for it in store.pending(Stage.BUILD, Scope(kinds=(Kind.PERFORMANCE,)))] == [pull.name]


def test_a_change_without_tests_is_no_part_of_a_pair(db: str) -> None:
    with Store.open(db) as store:
        whole_chain(store, 1)
        whole_chain(store, 2, test_lines=0, test_files=())
        whole_chain(store, 3)
        (pair,) = store.open_pairs(Scope(kinds=(Kind.COMBINED,)))
        assert (pair.candidate.name, pair.others[0].candidate.name) == ("ada__greet-3", "ada__greet-1")


def test_what_is_made_of_two_changes_waits_for_both(db: str) -> None:
    with Store.open(db) as store:
        whole_chain(store, 1)
        scope = Scope(kinds=(Kind.COMBINED,))
        assert list(store.open_pairs(scope)) == []
        whole_chain(store, 2)
        whole_chain(store, 3, source="git:elsewhere")
        (pair,) = store.open_pairs(scope)
        assert (pair.candidate.name, pair.others[0].candidate.name) == ("ada__greet-2", "ada__greet-1")
        assert pair.others[0].verification is not None


def test_simulated_tasks_are_told_only_when_asked_for(db: str) -> None:
    with Store.open(db) as store:
        first = whole_chain(store)
        played = first.model_copy(update={"kind": Kind.SIMULATED, "environment": "simulated", "name": "ada__greet-1.s"})
        keep(store, Stage.DERIVE, Task(**played.model_dump()), kind=Kind.SIMULATED)
        assert [row["kind"] for row in queries.list_tasks(store, Filters())] == ["bugfix"]
        assert [row["kind"] for row in queries.list_tasks(store, Filters(kind="simulated"))] == ["simulated"]


# ---------------------------------------------------------------------------------------------------- families


def task(name: str, repo: str, *candidates: str) -> Task:
    verification = records.verification(records.environment(records.candidate(records.pull_request())))
    made = records.task(verification, records.candidate(records.pull_request()))
    first, *others = candidates
    return Task(**made.model_dump() | {"name": name, "repo": repo, "candidate": first, "others": tuple(others)})


def test_tasks_of_one_repository_or_of_one_change_are_one_family() -> None:
    tasks = [
        task("a", "ada/greet", "c1"), task("b", "ada/greet", "c2"), task("c", "bob/fork", "c3"),
        task("d", "bob/other", "c4", "c1"), task("e", "eve/alone", "c5"),
    ]  # fmt: skip
    assert [[t.name for t in family] for family in families.families(reversed(tasks))] == [
        ["a", "b", "d"],
        ["c"],
        ["e"],
    ]


def test_a_split_parts_no_family_and_later_tasks_move_none() -> None:
    tasks = [task(f"t{n}", f"ada/r{n % 30}", f"c{n}") for n in range(90)]
    sides = families.split(tasks, [0.7, 0.3])
    assert sorted(t.name for side in sides for t in side) == sorted(t.name for t in tasks)
    repos = [{t.repo for t in side} for side in sides]
    assert not repos[0] & repos[1]
    assert 10 < len(repos[0]) < 29
    later = families.split([*tasks, task("new", "bob/new", "c1000")], [0.7, 0.3])
    assert {t.name for t in sides[0]} <= {t.name for t in later[0]}


def test_what_was_measured_of_an_oracle_is_no_part_of_a_tasks_identity() -> None:
    first = task("a", "ada/greet", "c1")
    form = Writing(mutants=(), variants=(), lines=(), covered=0.25)
    made = [Task(**first.model_dump() | {"oracle": form.model_copy(update={"covered": c})}) for c in (0.25, 0.5, None)]
    assert len({one.id for one in made}) == 1
    assert made[0].id != first.id
