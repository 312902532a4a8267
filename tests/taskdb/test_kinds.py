"""The queue of kinds: what is pending for a change, its yields, and families of tasks."""

from __future__ import annotations

from collections.abc import Sequence

from mergemill.bundles import families
from taskdb.queries import derivation_counts
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters, parse_filters
from taskdb.records import Kind, Record, Stage, Task, TestOrigin, Verification
from taskdb.records.kinds import MAX_NEIGHBOURS
from taskdb.records.oracles import TestWritingOracle
from taskdb.records.tags import ChangeKind
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage

EVERY = tuple(Kind)


def kinds_of(store: Store, wanted: Sequence[Kind], **scope: object) -> dict[str, tuple[Kind, ...]]:
    """Name of each change that a stage can do something for -> the kinds that are open."""
    scoped = make_scope(kinds=wanted, **scope)
    return {lineage.candidate.name: lineage.kinds for lineage in store.find_open_lineages(scoped)}


def keep(store: Store, stage: Stage, *made: Record, kind: Kind) -> None:
    for result in made:
        store.add_stage_results(
            StageResult(stage=stage, result=result, source="git:greet", name="ada__greet-1", seconds=1, kind=kind)
        )


def test_a_change_with_all_requested_tasks_is_not_pending(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store)
        assert kinds_of(store, (Kind.BUGFIX,)) == {}
        assert kinds_of(store, (Kind.BUGFIX, Kind.FEATURE)) == {}  # a feature is derived only where no bug fix is


def test_another_kind_can_be_requested_later_and_is_tried_once(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store)
        assert kinds_of(store, (Kind.TEST_WRITING,)) == {"ada__greet-1": (Kind.TEST_WRITING,)}
        (lineage,) = store.find_pending(Stage.DERIVE, make_scope(kinds=(Kind.TEST_WRITING,)))
        refused = records.make_rejection(lineage.require_verdict(), Stage.DERIVE, "no-mutants", kind=Kind.TEST_WRITING)
        keep(store, Stage.DERIVE, refused, kind=Kind.TEST_WRITING)
        assert kinds_of(store, (Kind.TEST_WRITING,)) == {}
        assert kinds_of(store, (Kind.TEST_WRITING,), retry=["no-mutants"]) == {"ada__greet-1": (Kind.TEST_WRITING,)}
        assert queries.compute_summary(store)["certified"] == 1
        assert queries.compute_summary(store)["tasks"] == {"bugfix": 1}
        assert derivation_counts.count_by_change(store)[0]["test-writing"] == "no-mutants"


def test_a_set_aside_change_is_pending_for_the_judge_with_retry(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, to=Stage.VERIFY)
        (lineage,) = store.find_pending(Stage.JUDGE, make_scope())
        verdict = records.make_verdict(lineage.require_verification(), set_aside="message-not-stated")
        refused = records.make_rejection(verdict, Stage.DERIVE, "message-not-stated", kind=Kind.BUGFIX)
        store.add(verdict, refused)
        assert list(store.find_pending(Stage.JUDGE, make_scope(retry=["flaky"]))) == []
        (lineage,) = store.find_pending(Stage.JUDGE, make_scope(retry=["message-not-stated"]))
        assert (lineage.next_stage, lineage.verdict) == (Stage.JUDGE, verdict)
        store.add(records.make_verdict(lineage.require_verification()))
        assert kinds_of(store, (Kind.BUGFIX,)) == {"ada__greet-1": (Kind.BUGFIX,)}
        assert list(store.find_pending(Stage.JUDGE, make_scope(retry=["message-not-stated"]))) == []


def test_a_derived_task_is_pending_for_certification(db: str) -> None:
    with Store.open(db) as store:
        first = add_lineage(store)
        names = [f"{first.name.removesuffix('bugfix')}injected-{n}" for n in (1, 2)]
        made = [first.model_copy(update={"kind": Kind.INJECTED, "name": name}) for name in names]
        keep(store, Stage.DERIVE, *(Task(**task.model_dump()) for task in made), kind=Kind.INJECTED)
        (lineage,) = store.find_open_lineages(make_scope(kinds=(Kind.INJECTED,)))
        assert [task.name for task in lineage.tasks] == names
        assert lineage.kinds == ()
        keep(store, Stage.CERTIFY, records.make_certificate(lineage.tasks[0]), kind=Kind.INJECTED)
        (lineage,) = store.find_open_lineages(make_scope())  # what was made is certified, whatever is to be made now
        assert [task.name for task in lineage.tasks] == names[1:]
        assert list(store.find_open_lineages(make_scope(certified=(Kind.REVIEW,)))) == []
        assert derivation_counts.count_by_change(store)[0]["injected"] == "certified, derived"
        assert [row["kind"] for row in derivation_counts.count_by_kind(store)] == ["bugfix", "injected"]
        keep(store, Stage.CERTIFY, records.make_certificate(lineage.tasks[0]), kind=Kind.INJECTED)
        assert derivation_counts.count_by_change(store)[0]["injected"] == "certified 2"


def test_changes_of_one_name_and_day_have_a_row_for_each_source(db: str) -> None:
    sources = ("git:greet", "git:other")
    with Store.open(db) as store:
        for source in sources:
            task = add_lineage(store, source=source)
            verification = store.get(Verification, task.parent)
            store.add(
                records.make_rejection(
                    records.make_verdict(verification), Stage.DERIVE, f"of-{source}", kind=Kind.FEATURE, source=source
                )
            )
        add_lineage(store, 2)
        rows = [
            (row["change"], row["bugfix"], row["feature"], row["review"])
            for row in derivation_counts.count_by_change(store)
        ]
        alone = derivation_counts.count_by_change(store, sources[1:])
    newest, *both = rows
    assert newest == ("ada__greet-2", "certified", None, None)
    assert sorted(both) == [("ada__greet-1", "certified", f"of-{source}", None) for source in sources]
    assert [(row["change"], row["feature"]) for row in alone] == [("ada__greet-1", "of-git:other")]


def test_a_review_needs_no_environment_and_a_simulation_only_where_there_is_none(db: str) -> None:
    wanted = (Kind.REVIEW, Kind.SIMULATED)
    with Store.open(db) as store:
        add_lineage(store, 1)
        pull = records.make_pull_request(2)
        candidate = records.make_candidate(pull)
        store.add_mined_changes((pull, candidate, 0.0))
        assert set(kinds_of(store, wanted)) == {"ada__greet-1", "ada__greet-2"}
        assert [it.candidate.name for it in store.find_pending(Stage.DERIVE, make_scope(kinds=(Kind.SIMULATED,)))] == []
        refused = records.make_rejection(candidate, Stage.BUILD, "no-plan")
        store.add_stage_results(
            StageResult(stage=Stage.BUILD, result=refused, source="git:greet", name=candidate.name, seconds=1)
        )
        (lineage,) = store.find_pending(Stage.DERIVE, make_scope(kinds=(Kind.SIMULATED,)))
        assert (lineage.candidate.name, lineage.rejected_by) == ("ada__greet-2", Stage.BUILD)


def test_removed_code_needs_an_environment_whatever_verification_decides(db: str) -> None:
    with Store.open(db) as store:
        pull = records.make_pull_request(1)
        candidate = records.make_candidate(pull)
        store.add_mined_changes((pull, candidate, 0.0))
        scope = make_scope(kinds=(Kind.REBUILD,))
        assert list(store.find_pending(Stage.DERIVE, scope)) == []
        environment = records.make_environment(candidate)
        keep(store, Stage.BUILD, environment, kind=Kind.REBUILD)
        assert list(store.find_pending(Stage.DERIVE, scope)) == []
        keep(store, Stage.VERIFY, records.make_rejection(environment, Stage.VERIFY, "flaky"), kind=Kind.REBUILD)
        (lineage,) = store.find_pending(Stage.DERIVE, scope)
        assert (lineage.kinds, lineage.environment) == ((Kind.REBUILD,), environment)
        assert (lineage.verification, lineage.rejected_by) == (None, Stage.VERIFY)


def test_performance_tasks_are_derived_only_from_performance_changes(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store)
        assert kinds_of(store, (Kind.PERFORMANCE,)) == {}


def test_a_change_without_tests_is_pending_only_for_kinds_that_need_none(db: str) -> None:
    with Store.open(db) as store:
        pull = records.make_pull_request(1)
        candidate = records.make_candidate(pull, test_lines=0, test_files=(), change_kind=ChangeKind.PERFORMANCE)
        store.add_mined_changes((pull, candidate, 0.0), tags=[records.make_tags(pull, ChangeKind.PERFORMANCE)])
        assert kinds_of(store, (Kind.BUGFIX, Kind.FEATURE, Kind.TEST_WRITING, Kind.COMBINED)) == {}
        assert kinds_of(store, EVERY) == {
            "ada__greet-1": (Kind.PERFORMANCE, Kind.INJECTED, Kind.REBUILD, Kind.REVIEW, Kind.MIRRORED)
        }
        assert [it.candidate.name for it in store.find_pending(Stage.BUILD, make_scope(kinds=(Kind.REVIEW,)))] == []
        assert [it.candidate.name for it in store.find_pending(Stage.BUILD, make_scope(kinds=(Kind.PERFORMANCE,)))] == [
            pull.name
        ]


def test_a_change_without_tests_is_not_paired(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, 1)
        add_lineage(store, 2, test_lines=0, test_files=())
        add_lineage(store, 3)
        (pair,) = store.find_open_pairs(make_scope(kinds=(Kind.COMBINED,)))
        assert (pair.candidate.name, pair.neighbours[0].candidate.name) == ("ada__greet-3", "ada__greet-1")


def test_tasks_of_two_changes_are_pending_when_both_are_judged(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, 1)
        scope = make_scope(kinds=(Kind.COMBINED,))
        assert list(store.find_open_pairs(scope)) == []
        add_lineage(store, 2)
        add_lineage(store, 3, source="git:elsewhere")
        (pair,) = store.find_open_pairs(scope)
        assert (pair.candidate.name, pair.neighbours[0].candidate.name) == ("ada__greet-2", "ada__greet-1")
        assert pair.neighbours[0].verification is not None


def test_older_neighbours_are_limited_and_the_newest_come_first(db: str) -> None:
    with Store.open(db) as store:
        for number in range(1, MAX_NEIGHBOURS + 4):
            add_lineage(store, number)
        *_, newest = sorted(
            store.find_open_pairs(make_scope(kinds=(Kind.COMBINED,))),
            key=lambda open_pair: open_pair.candidate.created_at,
        )
        numbers = [int(other.candidate.name.rpartition("-")[2]) for other in newest.neighbours]
        assert numbers == sorted(numbers, reverse=True)
        assert (len(numbers), numbers[0]) == (MAX_NEIGHBOURS, int(newest.candidate.name.rpartition("-")[2]) - 1)


def test_simulated_tasks_are_listed_only_on_request(db: str) -> None:
    with Store.open(db) as store:
        first = add_lineage(store)
        played = first.model_copy(update={"kind": Kind.SIMULATED, "environment": "simulated", "name": "ada__greet-1.s"})
        keep(store, Stage.DERIVE, Task(**played.model_dump()), kind=Kind.SIMULATED)
        assert [row["kind"] for row in queries.list_tasks(store, TaskFilters())] == ["bugfix"]
        assert [row["kind"] for row in queries.list_tasks(store, TaskFilters(kind="simulated"))] == ["simulated"]


def test_tasks_with_model_written_tests_are_listed_only_on_request(db: str) -> None:
    with Store.open(db) as store:
        first = add_lineage(store)
        written = first.model_copy(update={"tests": TestOrigin.MODEL_WRITTEN, "name": "ada__greet-1.w"})
        keep(store, Stage.DERIVE, Task(**written.model_dump()), kind=Kind.BUGFIX)
        for tests, names in (
            (None, [first.name]),
            ("human", [first.name]),
            ("model-written", ["ada__greet-1.w"]),
            ("all", [first.name, "ada__greet-1.w"]),
        ):
            filters = parse_filters({"tests": tests})
            assert [row["name"] for row in queries.list_tasks(store, filters)] == names, tests
            assert queries.compute_stats(store, filters)["kind"] == {"bugfix": len(names)}, tests


# ---------------------------------------------------------------------------------------------------- families


def test_repositories_that_share_a_change_are_one_family() -> None:
    rows = [
        ("ada/greet", ["c1"]),
        ("Ada/Greet", ["c2"]),
        ("bob/fork", ["c3"]),
        ("bob/other", ["c4", "c1"]),
        ("eve/alone", ["c5"]),
        ("eve/more", ["c6", "c4"]),
    ]
    for order in (rows, rows[::-1]):
        index = families.FamilyIndex()
        for row in order:
            index.add(*row)
        names = [index.get_name(repo) for repo, _ in rows]
        assert names == ["ada/greet", "ada/greet", "bob/fork", "ada/greet", "eve/alone", "ada/greet"]


def test_a_split_keeps_families_together_and_later_tasks_move_none() -> None:
    index = families.FamilyIndex()
    for number in range(90):
        index.add(f"ada/r{number % 30}", [f"c{number}"])
    index.add("ada/r1", ["c2"])
    shares = [0.7, 0.3]
    before = {repo: index.choose_side(repo, shares) for repo in (f"ada/r{number}" for number in range(30))}
    assert 10 < list(before.values()).count(0) < 29
    assert before["ada/r1"] == before["ada/r2"]
    index.add("bob/new", ["c1000"])
    assert {repo: index.choose_side(repo, shares) for repo in before} == before
    assert {index.choose_side(f"ada/r{number}", [1.0]) for number in range(30)} == {0}


def make_task() -> Task:
    candidate = records.make_candidate(records.make_pull_request())
    made: Task = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    return made


def test_measured_fields_of_an_oracle_are_excluded_from_the_identity_of_a_task() -> None:
    first = make_task()
    form = TestWritingOracle(mutants=(), variants=(), gold_spans=(), base_coverage=0.25)
    made = [
        Task(**first.model_dump() | {"oracle": form.model_copy(update={"base_coverage": c})}) for c in (0.25, 0.5, None)
    ]
    assert len({record.id for record in made}) == 1
    assert made[0].id != first.id
