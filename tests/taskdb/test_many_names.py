"""No query grows with the number of names, ids or sources: 50,000 of each select what the few known of them do."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest
from sqlalchemy import event

from taskdb import counts
from taskdb.pending import count_candidates, count_open_changes, find_open_states, select_open_changes
from taskdb.queries import derivation_counts, histograms, pages, sampling, simulations, trajectories, worlds
from taskdb.queries import tasks as queries
from taskdb.queries.images import load_image_copies
from taskdb.queries.sources import iterate_base_commits
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.task_names import list_origins, resolve_names
from taskdb.records import Candidate, Task
from taskdb.schema.task_columns import WORD_FILTERS
from taskdb.store import Store
from tests import records
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage

MANY = 50_000
MAX_TEXT = 20_000
"""Characters of a statement, whatever it selects by."""
NAMES = [f"nobody__knows-{number}" for number in range(MANY)]
IDS = [hashlib.sha256(name.encode()).hexdigest() for name in NAMES]
SOURCES = [f"github:nobody/knows-{number}" for number in range(MANY)]


@pytest.fixture
def store(db: str) -> Iterator[Store]:
    """A database with four tasks; every statement that it executes is checked."""
    with Store.open(db) as store:
        for number in range(1, 5):
            add_lineage(store, number)

        @event.listens_for(store.engine, "before_cursor_execute")
        def check(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
            assert len(statement) < MAX_TEXT, statement[:200]
            assert isinstance(parameters, list) or len(parameters) <= 1000

        yield store


def find_changes(store: Store, **scope: Any) -> list[Any]:
    wanted = make_scope(**scope)
    with store.read_transaction() as connection:
        states = find_open_states(connection, wanted, lambda _: True)
        changes = select_open_changes(connection, wanted, states)
        assert count_open_changes(connection, wanted, states) == len(changes)
        return [*changes, count_candidates(connection, wanted), store.count_lineages(wanted)]


@pytest.mark.parametrize("limit", [None, 3])
def test_changes_are_selected_by_many_names_and_sources(store: Store, limit: int | None) -> None:
    candidates = sorted(store.load_all(Candidate), key=lambda candidate: candidate.name)
    first, second, third, _ = candidates
    few = find_changes(store, only=[first.name, second.id, third.id[:12]], limit=limit)
    assert few[-2] == 3
    assert find_changes(store, only=[*NAMES, first.name, *IDS, second.id, third.id[:12]], limit=limit) == few
    assert find_changes(store, only=[*NAMES, *IDS], limit=limit)[-2] == 0
    assert find_changes(store, sources=[*SOURCES, first.source], limit=limit) == find_changes(
        store, sources=[first.source], limit=limit
    )


def test_renewals_are_selected_by_many_names(store: Store) -> None:
    assert store.count_renewals(make_scope(only=[*NAMES, *IDS], sources=SOURCES)) == 0


def list_filters(tasks: list[Task]) -> dict[str, Callable[[list[str]], TaskFilters]]:
    known = {"ids": [task.id for task in tasks[:2]], "excluded_ids": [task.id for task in tasks[2:]]}
    assert set(known) < {f.name for f in fields(TaskFilters)}
    made: dict[str, Callable[[list[str]], TaskFilters]] = {
        name: lambda more, name=name, values=values: TaskFilters(**{name: (*more, *values)})  # type: ignore[misc]
        for name, values in known.items()
    }
    for name in WORD_FILTERS:
        values = {str(getattr(task, name)) for task in tasks if hasattr(task, name)}
        made[name] = lambda more, name=name, values=values: TaskFilters(**{name: (*more, *sorted(values))})  # type: ignore[misc]
    return made


def test_tasks_are_selected_by_many_words_of_every_filter(store: Store) -> None:
    tasks = sorted(store.load_all(Task), key=lambda task: task.name)
    readers: tuple[Callable[[TaskFilters], Any], ...] = (
        lambda filters: queries.list_tasks(store, filters),
        lambda filters: queries.count_tasks(store, filters),
        lambda filters: sorted(queries.iter_families(store, filters)),
        lambda filters: queries.load_tasks(store, filters),
        lambda filters: queries.search_tasks(store, ["widget"], filters),
        lambda filters: queries.find_shared_name(store, filters),
        lambda filters: queries.compute_stats(store, filters),
        lambda filters: histograms.count_bins(store, filters),
        lambda filters: pages.count_facets(store, filters, ["kind", "repo"]),
    )
    for name, make in list_filters(tasks).items():
        many, few = make(NAMES), make([])
        for read in readers if name in ("ids", "repo") else readers[:1]:
            assert read(many) == read(few), name
    assert sampling.sample_tasks(store, TaskFilters(ids=(*IDS, tasks[0].id), sample=1)) == (tasks[0].id,)


def test_names_ids_and_sources_are_looked_up(store: Store) -> None:
    tasks = sorted(store.load_all(Task), key=lambda task: task.name)
    ids, problems = resolve_names(store, [*NAMES, *IDS, tasks[0].name, tasks[1].id])
    assert (set(ids), len(problems)) == ({tasks[0].id, tasks[1].id}, 2 * MANY)
    assert set(store.get_many(Task, [*IDS, tasks[0].id])) == {tasks[0].id}
    repo = tasks[0].repo
    assert list(list_origins(store, [*NAMES, repo])) == list(list_origins(store, [repo]))
    assert len(list(list_origins(store, [repo]))) > 0
    assert load_image_copies(store, NAMES) == {}
    assert queries.count_rollouts(store, IDS) == {}
    source = tasks[0].source
    assert list(iterate_base_commits(store, [*SOURCES[:100], source])) == list(iterate_base_commits(store, [source]))
    candidates = store.load_all(Candidate)
    many = [records.make_candidate(records.make_pull_request(number)) for number in range(1000, 1500)]
    scope = make_scope(only=[*NAMES, *IDS])
    open_candidates = [lineage.candidate for lineage in store.find_open_lineages_of([*many, *candidates], scope)]
    assert {candidate.id for candidate in open_candidates} <= {candidate.id for candidate in candidates}


def test_counts_are_read_of_many_sources(store: Store) -> None:
    (source,) = {candidate.source for candidate in store.load_all(Candidate)}
    readers: tuple[Callable[[list[str]], Any], ...] = (
        lambda sources: queries.compute_summary(store, sources),
        lambda sources: queries.compute_funnel(store, sources),
        lambda sources: queries.compute_funnel(store, sources, "acme/widget"),
        lambda sources: queries.compute_funnel_by(store, "repo", sources),
        lambda sources: queries.find_examples(store, sources),
        lambda sources: derivation_counts.count_by_change(store, sources),
        lambda sources: derivation_counts.count_by_kind(store, sources),
    )
    for read in readers:
        assert read([*SOURCES, source]) == read([source])
    with store.read_transaction() as connection:
        of_many = counts.count_candidates_of(connection, [*SOURCES, source])
    assert (of_many[source], sum(of_many.values())) == (4, 4)


def test_rollouts_worlds_and_conversations_are_selected_by_many_words(store: Store) -> None:
    words = tuple(NAMES)
    filters = trajectories.TrajectoryFilters(scaffold=words, environments=words, tasks=frozenset(words))
    assert trajectories.list_trajectories(store, filters) == []
    assert worlds.list_worlds(store, worlds.WorldFilters(status=words, license=words)) == []
    assert worlds.find_solution_facts(store, IDS) == {}
    named = dict.fromkeys(("domain", "profile", "simulator", "scenario", "license"), words)
    wanted = simulations.ConversationFilters(**named)
    assert simulations.list_conversations(store, wanted) == []


def test_a_scope_of_many_names_decides_at_once() -> None:
    scope = make_scope(only=[*NAMES, *IDS, "abc"])
    day = "2024-01-01"
    assert all(scope.includes(name, "0" * 64, day, "python") for name in NAMES)
    assert scope.includes("x", "abc" + "0" * 61, day, "python")
    assert not scope.includes("x", "abd" + "0" * 61, day, "python")
