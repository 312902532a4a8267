"""Listings are equal to the joins that define them, whatever was written before."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest
from sqlalchemy.event import listen, remove

from core.errors import InputError
from mergemill.web.task_listing import FACETS
from taskdb import counts, listing
from taskdb.queries import derivation_counts
from taskdb.queries import pages as page_queries
from taskdb.queries import tasks as queries
from taskdb.queries.histograms import count_bins
from taskdb.queries.task_columns import iter_task_columns
from taskdb.queries.task_filters import Range
from taskdb.queries.tasks import TaskFilters
from taskdb.records import Candidate, Kind, PullRequest, Record, Stage, Task
from taskdb.records.audits import Audit
from taskdb.records.tags import ChangeKind
from taskdb.records.work import ChangeState, Scope, find_pending_work
from taskdb.schema import tables
from taskdb.schema.columns import TASK_COLUMNS
from taskdb.schema.mapping import get_table
from taskdb.store import Store
from tests import records
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage, make_url

LISTINGS = (tables.ChangeListingRow, tables.DerivationListingRow, tables.TaskListingRow)
KINDS = (Kind.BUGFIX, Kind.FEATURE, Kind.TEST_WRITING, Kind.INJECTED, Kind.REVIEW)
GOLD_RUN = records.make_test_run()


def read_listings(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    with store.read_transaction() as connection:
        listings = {}
        for row in LISTINGS:
            table = get_table(row)
            columns = [column for column in table.c if column.name not in ("seq", "state")]
            rows = connection.execute(table.select().with_only_columns(*columns)).all()
            listings[table.name] = sorted((tuple(row) for row in rows), key=repr)
        for query in (
            "SELECT h.change, s.state FROM change_listing h JOIN change_state s ON s.seq = h.state",
            "SELECT * FROM funnel_count WHERE dimension <> 'seconds'",
            "SELECT * FROM task_count",
        ):
            listings[query] = sorted((tuple(row) for row in connection.exec_driver_sql(query)), key=repr)
        return listings


def count_in_python(rows: list[dict[str, Any]], facet: str) -> dict[str, int]:
    return dict(Counter(str(row[facet]) for row in rows if row[facet] is not None))


class RandomWriter:
    """Writes records of all classes in an order that stages allow, some of them again."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.made: list[Record] = []
        self.n_steps = 0

    def pick(self, *kinds: type[Any]) -> Any:
        """Return one of the newer records of some classes, or None when there is none."""
        recent = [record for record in self.made if isinstance(record, kinds)][-8:]
        return self.random.choice(recent) if recent else None

    def step(self) -> None:
        """Write something."""
        self.n_steps += 1
        stages = (self.mine, self.build, self.verify, self.judge, self.derive, self.certify, self.reject, self.audit)
        (write,) = self.random.choices(stages, weights=(1, 3, 3, 2, 6, 1, 3, 1))
        write()

    def add(self, record: Record) -> None:
        self.made.append(record)
        self.store.add(record)

    def mine(self) -> None:
        pull = self.pick(PullRequest) if self.random.random() < 0.3 else None
        pull = pull or records.make_pull_request(self.n_steps, source=self.random.choice(["git:a", "git:b"]))
        tags = records.make_tags(pull, self.random.choice(list(ChangeKind)))
        result: Any = records.make_candidate(pull, problem_statement=f"statement {self.random.randrange(3)}")
        if self.random.random() < 0.2:
            result = records.make_rejection(pull, Stage.MINE)
        self.made += [pull, tags, result]
        self.store.add_mined_changes((pull, result, 0.1), tags=[tags])

    def build(self) -> None:
        if candidate := self.pick(Candidate):
            self.add(records.make_environment(candidate, image=f"mergemill/x:{self.random.randrange(3)}"))

    def verify(self) -> None:
        if environment := self.pick(type(records.make_environment(records.make_candidate(PULL)))):
            runs = (GOLD_RUN,) * self.random.randrange(3)
            candidate = environment.parent
            self.add(records.make_verification(environment, candidate=candidate, runs=runs, repeats=len(runs)))

    def judge(self) -> None:
        if verification := self.pick(type(VERIFICATION)):
            set_aside = self.random.choice([None, "message-not-stated"])
            self.add(records.make_verdict(verification, set_aside=set_aside))

    def derive(self) -> None:
        if verification := self.pick(type(VERIFICATION)):
            candidate = next(candidate for candidate in self.made if candidate.id == verification.candidate)
            assert isinstance(candidate, Candidate)
            kind = self.random.choice(KINDS)
            changes: dict[str, Any] = {"kind": kind, "name": f"{candidate.name}.{kind}"}
            if kind is Kind.REVIEW:
                changes |= {"parent": candidate.id, "environment": "none", "image": ""}
            self.add(records.make_task(verification, candidate, hints=str(self.random.randrange(2)), **changes))

    def certify(self) -> None:
        if task := self.pick(Task):
            self.add(records.make_certificate(task, gold=(1.0,) * self.random.randrange(1, 4)))

    def reject(self) -> None:
        if record := self.pick(Record):
            stage = self.random.choice(list(Stage)[1:])
            kind = self.random.choice([None, *KINDS]) if stage in (Stage.DERIVE, Stage.CERTIFY) else None
            reason = self.random.choice(["no-tests", "flaky"])
            self.add(records.make_rejection(record, stage, reason, kind=kind))

    def audit(self) -> None:
        if task := self.pick(Task):
            clean = self.random.random() < 0.5
            self.add(Audit(parent=task.id, name=task.name, clean=clean, at=str(self.n_steps)))


PULL = records.make_pull_request(0)
VERIFICATION = records.make_verification(records.make_environment(records.make_candidate(PULL)))


@pytest.mark.parametrize("seed", [1, 10])
def test_listings_equal_their_definitions_after_any_history(db: str, seed: int) -> None:
    with Store.open(db) as store:
        writer = RandomWriter(store, seed)
        writer.mine()
        for _ in range(250):
            writer.step()
        maintained = read_listings(store)
        assert all(maintained.values())
        with store.write_transaction() as connection:
            listing.rebuild(connection)
        assert read_listings(store) == maintained


@pytest.mark.parametrize("seed", [3, 7])
def test_counters_and_queue_equal_what_reading_every_row_gives(db: str, seed: int) -> None:
    with Store.open(db) as store:
        writer = RandomWriter(store, seed)
        for _ in range(250):
            writer.step()
        tasks = queries.list_tasks(store, TaskFilters(), columns=TASK_COLUMNS)
        with store.read_transaction() as connection:
            changes = connection.exec_driver_sql("SELECT * FROM changes ORDER BY merged_at DESC, name").all()
            derived = connection.exec_driver_sql("SELECT * FROM derivations").all()
        assert len({row["status"] for row in tasks}) == 3
        chosen = TaskFilters(status="certified")
        everything = page_queries.count_facets(store, TaskFilters(), counts.FACETS)
        certified = page_queries.count_facets(store, chosen, counts.FACETS)
        for facet in counts.FACETS:
            assert everything[facet] == count_in_python(tasks, facet)
            some = [row for row in tasks if row["status"] == "certified"]
            assert certified[facet] == count_in_python(some, facet)
        sizes = sorted(row["n_fail_to_pass"] for row in tasks)
        assert queries.compute_stats(store, TaskFilters())["median_fail_to_pass"] == sizes[len(sizes) // 2]

        for sources in ([], ["git:a"], ["git:a", "git:b"]):
            here = [row for row in changes if not sources or row.source in sources]
            made = [row for row in derived if (not sources or row.source in sources) and row.task]
            summary = queries.compute_summary(store, sources)
            assert summary["mined"] == len(here)
            assert summary["verified"] == sum(row.verification is not None for row in here)
            assert summary["certified"] == sum(row.certificate is not None for row in made)
            assert summary["tasks"] == dict(sorted(Counter(row.kind for row in made).items()))
            assert summary["rejected"] == dict(Counter(row.reason for row in here if row.reason))
            examples = queries.find_examples(store, sources)
            assert set(examples) == {(row.rejected_by, row.reason) for row in here if row.reason}
            by_kind = {row["kind"]: row for row in derivation_counts.count_by_kind(store, sources)}
            for kind, row in by_kind.items():
                assert row["tasks"] == sum(task.kind == kind for task in made)

        for scope in (
            make_scope(kinds=KINDS),
            make_scope(kinds=KINDS, sources=["git:b"], retry=["flaky"]),
            make_scope(kinds=KINDS, limit=2, stages=[Stage.VERIFY, Stage.CERTIFY]),
            make_scope(kinds=KINDS, since=date(2024, 3, 5), until=date(2024, 3, 20)),
        ):
            assert [open_lineage.candidate.id for open_lineage in store.find_open_lineages(scope)] == find_open_slowly(
                store, scope
            )
            assert store.count_lineages(scope)[1] == len(find_open_slowly(store, scope))


def find_open_slowly(store: Store, scope: Scope) -> list[str]:
    """Candidates with pending work, by a decision on every change."""
    with store.read_transaction() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM change_listing ORDER BY merged_at DESC, name").all()
        derived = connection.exec_driver_sql("SELECT * FROM derivation_listing").mappings().all()
    open_ids, counted = [], Counter[str]()
    for row in rows:
        if row.candidate is None or (scope.sources and row.source not in scope.sources):
            continue
        if scope.limit is not None and counted[row.source] >= scope.limit:
            continue
        if scope.includes(row.name, row.candidate, row.merged_at, row.language):
            counted[row.source] += 1
            state = ChangeState.from_rows(
                row._mapping, [derivation for derivation in derived if derivation["change"] == row.change]
            )
            todo = find_pending_work(state, scope)
            open_ids += [row.candidate] if todo.includes_any(scope.stages) else []
    return open_ids


def test_a_task_is_listed_with_the_facts_of_its_chain(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store)
        (row,) = queries.list_tasks(store, TaskFilters(), columns=TASK_COLUMNS)
        assert tuple(row) == TASK_COLUMNS
        assert (row["underspecified"], row["unfair_tests"], row["set_aside"]) == (0.3, 0.4, None)
        assert row["flaky_bound"] == pytest.approx(0.5615, abs=1e-4)  # three gradings of the certificate
        assert (row["strength"], row["untested_hunks"], row["control_bound"], row["audited"]) == (None,) * 4
        for score, hunks in ((0.25, ["a.py:3", "b.py:1-4"]), (None, []), (0.5, [])):
            strength = {"score": score, "untested_hunks": hunks, "edits": []}
            store.add(Audit(parent=task.id, name=task.name, clean=True, strength=strength, at=f"at {score}"))
            (row,) = queries.list_tasks(store, TaskFilters(), columns=TASK_COLUMNS)
            expected = None if score is None else ", ".join(hunks)
            assert (row["strength"], row["untested_hunks"], row["audited"]) == (score, expected, "clean")
        assert not queries.list_tasks(store, TaskFilters(strength=Range(0.6, None)))
        assert (row["changed_files"], row["changed_lines"], row["family"]) == (1, 4, "ada__greet-1")
        assert (row["statement_tokens"], row["difficulty"], row["split"]) == (7, "{}", "train")
        store.add(Audit(parent=task.id, name=task.name, clean=False, at="2024-05-01T00:00:00+00:00"))
        assert queries.list_tasks(store, TaskFilters(), columns=["audited"]) == [{"audited": "findings"}]


def test_the_flaky_bound_is_wilsons_for_gradings_with_frozen_lists(db: str) -> None:
    for n_gradings in (1, 3, 10):
        interval = binomtest(0, n_gradings).proportion_ci(0.95, method="wilson")
        assert listing.compute_flaky_bound(n_gradings) == pytest.approx(interval.high, abs=1e-4)
    with Store.open(db) as store:
        derived = add_lineage(store, 1, to=Stage.DERIVE, runs=(GOLD_RUN,) * 3)
        certified = add_lineage(store, 2, runs=(GOLD_RUN,) * 3)
        rows = queries.list_tasks(store, TaskFilters(), columns=["id", "flaky_bound"])
        bounds = {row["id"]: row["flaky_bound"] for row in rows}
        assert bounds == {derived.id: None, certified.id: pytest.approx(0.5615, abs=1e-4)}


def test_pages_follow_each_other(db: str) -> None:
    with Store.open(db) as store:
        for number in range(1, 60):
            add_lineage(store, number)
        whole = queries.list_tasks(store, TaskFilters())
        rows: list[dict[str, Any]] = []
        while page := queries.list_tasks(store, TaskFilters(), 7, rows[-1]["name"] if rows else None):
            rows += page
        assert rows == whole
        assert [row["created_at"] for row in whole] == sorted((row["created_at"] for row in whole), reverse=True)
        assert queries.count_tasks(store, TaskFilters()) == len(whole) == 59
        assert [row for *_, row in queries.iter_tasks(store, TaskFilters(), 10)] == sorted(
            queries.list_tasks(store, TaskFilters(), columns=TASK_COLUMNS), key=lambda row: row["name"]
        )
        with pytest.raises(InputError, match="no task frob"):
            queries.list_tasks(store, TaskFilters(), after="frob")


@pytest.mark.parametrize(
    ("chosen", "index"),
    [
        (TaskFilters(), "listed_task_order"),
        (TaskFilters(repo="Ada/Greet"), "listed_task_any_repo"),
        (TaskFilters(language="python"), "listed_task_any_language"),
        (TaskFilters(license="mit"), "listed_task_any_license"),
        (TaskFilters(kind="bugfix"), "listed_task_kind"),
        (TaskFilters(status="certified"), "listed_task_status"),
    ],
)
def test_a_page_is_read_off_the_index_of_its_filter(tmp_path: Path, chosen: TaskFilters, index: str) -> None:
    with Store.open(make_url(tmp_path)) as store:
        statements: list[tuple[str, Any]] = []
        listen(store.engine, "before_cursor_execute", lambda *given: statements.append((given[2], given[3])))
        queries.list_tasks(store, chosen, 20)
        ((listed, values),) = [statement for statement in statements if "FROM tasks" in statement[0]]
        with store.read_transaction() as connection:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {listed}", values)]
    assert any(f"USING INDEX {index}" in step for step in plan), plan
    assert "USE TEMP B-TREE FOR ORDER BY" not in plan


def explain_queries(store: Store, ask: Callable[[], object]) -> list[str]:
    """Return the steps of the plans of all queries that a function asks; PostgreSQL avoids what small tables allow."""
    statements: list[tuple[str, Any]] = []

    def add_statement(*given: Any) -> None:
        statements.append((given[2], given[3]))

    listen(store.engine, "before_cursor_execute", add_statement)
    ask()
    remove(store.engine, "before_cursor_execute", add_statement)
    steps: list[str] = []
    with store.read_transaction() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        for name in () if is_sqlite else ("seqscan", "sort", "bitmapscan"):
            connection.exec_driver_sql(f"SET LOCAL enable_{name} = off")
        for query, values in statements:
            rows = connection.exec_driver_sql(f"EXPLAIN {'QUERY PLAN ' if is_sqlite else ''}{query}", values)
            steps += [str(row[-1]) for row in rows]
    return steps


def test_ranges_are_decided_in_an_index_on_sqlite(tmp_path: Path) -> None:
    chosen = TaskFilters(changed_lines=Range(1e8, None), strength=Range(0.5, None))
    with Store.open(make_url(tmp_path)) as store:
        asked: list[tuple[str, Callable[[], object]]] = [
            ("COVERING INDEX listed_task_order", lambda: queries.count_tasks(store, chosen)),
            ("USING INDEX listed_task_order", lambda: queries.list_tasks(store, chosen, 20)),
            ("COVERING INDEX listed_task_order", lambda: page_queries.count_facets(store, chosen, FACETS)),
            ("COVERING INDEX listed_task_order", lambda: count_bins(store, TaskFilters())),
        ]
        for index, ask in asked:
            plan = explain_queries(store, ask)
            assert any(index in step for step in plan), plan


def test_yields_and_exports_are_read_in_the_order_of_an_index(db: str) -> None:
    with Store.open(db) as store:
        plan = explain_queries(store, lambda: derivation_counts.count_by_change(store))
        covered = {"sqlite": "COVERING INDEX", "postgresql": "Index Only Scan using"}[store.engine.dialect.name]
        assert any(f"{covered} listed_derivation_order" in step for step in plan), plan
        plan = explain_queries(store, lambda: list(iter_task_columns(store, TaskFilters(), 10)))
        by_name = {"sqlite": "listed_task_name", "postgresql": "listed_task_bytes"}[store.engine.dialect.name]
        assert any(f"sing {by_name} on" in step or f"USING INDEX {by_name}" in step for step in plan), plan


def test_facets_of_a_range_are_those_of_its_tasks(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(db) as store:
        for number in range(1, 30):
            add_lineage(store, number, gold_lines=number, source=f"git:{number % 3}")
        chosen = TaskFilters(changed_lines=Range(5, 20))
        rows = queries.list_tasks(store, chosen, columns=TASK_COLUMNS)
        facets = page_queries.count_facets(store, chosen, ("source", "kind", "audited"))
        assert facets == {facet: count_in_python(rows, facet) for facet in ("source", "kind", "audited")}
        assert sum(n or 0 for n in facets["source"].values()) == len(rows) == 16
        monkeypatch.setattr(page_queries, "MAX_COUNTED", 15)
        every = page_queries.count_facets(store, TaskFilters(), ("source", "kind", "audited"))
        assert every == {
            "source": dict(Counter(f"git:{n % 3}" for n in range(1, 30))),
            "kind": {"bugfix": 29},
            "audited": {},
        }
        uncounted = page_queries.count_facets(store, chosen, ("source", "kind", "audited"))
        assert uncounted == {facet: dict.fromkeys(values) for facet, values in every.items()}


def test_facets_of_many_tasks_of_one_value_are_known_from_counters(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(db) as store:
        for number in range(1, 8):
            add_lineage(store, number, license="MIT" if number < 6 else "BSD, or so")
        every = page_queries.count_facets(store, TaskFilters(), ("license", "kind"))
        for filters in (
            TaskFilters(license="mit"),
            TaskFilters(license=("Bsd, or so", "MIT")),
            TaskFilters(kind="bugfix"),
        ):
            rows = queries.list_tasks(store, filters, columns=TASK_COLUMNS)
            assert len(rows) > 4
            monkeypatch.setattr(page_queries, "MAX_COUNTED", 100)
            facets = page_queries.count_facets(store, filters, ("license", "kind"))
            assert facets == {facet: count_in_python(rows, facet) for facet in ("license", "kind")}
            with monkeypatch.context() as patched:
                patched.setattr(page_queries, "MAX_COUNTED", 4)
                patched.setattr(page_queries, "fetch_tuples", None)  # no task is read
                facets = page_queries.count_facets(store, filters, ("license", "kind"))
            assert facets == {facet: dict.fromkeys(values) for facet, values in every.items()}
        monkeypatch.setattr(page_queries, "MAX_COUNTED", 4)
        few = page_queries.count_facets(store, TaskFilters(license="bsd, or so"), ("license", "kind"))
        assert few == {"license": {"BSD, or so": 2}, "kind": {"bugfix": 2}}


BOUNDS = [(10, 20), (10.0, None), (9.5, 20.5), (None, 2.0**31), (2**31 - 1, None), (2**31, None), (-1e300, 1e300)]


def test_bounds_may_be_of_any_size_and_type(db: str) -> None:
    with Store.open(db) as store:
        for number in range(1, 30):
            add_lineage(store, number, gold_lines=number)
        for bounds in BOUNDS:
            low, high = bounds[0] or 0, bounds[1] or math.inf
            tasks = queries.count_tasks(store, TaskFilters(changed_lines=Range(*bounds)))
            assert tasks == sum(low <= number <= high for number in range(1, 30)), bounds


@pytest.mark.postgres
def test_postgresql_compares_whole_bounds_with_the_column_itself(postgresql: str) -> None:
    with Store.open(postgresql) as store:
        plan = explain_queries(
            store, lambda: queries.list_tasks(store, TaskFilters(changed_lines=Range(5.0, None)), 20)
        )
    assert any("changed_lines >= 5)" in step for step in plan), plan
