"""The documented queries, each with SQL written by hand for the same answer.

The SQL runs on the driver's own connection and returns tuples: no object of the project takes part. It knows the tables
as the project's queries do, indices included; what it reads of records is not parsed. The same SQL can run through
SQLAlchemy, which shows what part of a difference is the library's.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from sqlalchemy import make_url, text

from mergemill.pipeline.kinds import DEFAULT_KINDS, get_prerequisites
from taskdb.artifacts import Artifacts
from taskdb.queries import derivation_counts
from taskdb.queries import pages as page_queries
from taskdb.queries import tasks as queries
from taskdb.queries.histograms import EDGES, count_bins
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.records.work import Scope
from taskdb.schema.task_columns import Range
from taskdb.store import Store

LIMIT = 20
NO_MATCH = "tasks list --changed-lines, where none matches"
FACETS = ("kind", "status", "language", "license", "change_kind", "split", "audited", "repo")
"""Facets of the web page's list."""
Execute = Callable[[str, Mapping[str, Any]], Sequence[Any]]
"""Function that returns the rows of a statement with parameters such as `:name`."""
COLUMNS = "id, name, kind, repo, language, status, base_commit, n_fail_to_pass, n_pass_to_pass, created_at"
LISTED = f"SELECT {COLUMNS} FROM task_listing WHERE environment <> 'simulated'"  # noqa: S608 - constant columns
NEWEST = f"ORDER BY created_at DESC, name, id LIMIT {LIMIT}"


@dataclass(frozen=True, kw_only=True)
class Query:
    """One question, answered by the project and by SQL."""

    name: str
    ours: Callable[[], object]
    by_hand: Callable[[Execute], Any]


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Values that the questions are asked for: those of a task in the middle of the list."""

    task: str
    key: str
    repo: str
    language: str
    license: str
    change: str
    source: str
    candidate: str
    pull_request: str
    words: tuple[str, str]


@contextmanager
def open_driver(url: str) -> Iterator[Execute]:
    """Open a connection of the database's driver."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        connection = sqlite3.connect(str(parsed.database))
        yield lambda statement, values: connection.execute(statement, values).fetchall()
        connection.close()
        return
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as other:

        def execute(statement: str, values: Mapping[str, Any]) -> Sequence[Any]:
            named = re.sub(r"(?<!:):(\w+)", r"%(\1)s", statement.replace("%", "%%"))
            return other.execute(named.encode(), dict(values)).fetchall()

        yield execute


def make_library_execute(store: Store) -> Execute:
    """Return a function that executes SQL through SQLAlchemy, each statement in a transaction, and makes rows dicts."""
    prepare = cache(text)

    def execute(statement: str, values: Mapping[str, Any]) -> Sequence[Any]:
        with store.engine.connect() as connection, connection.begin():
            result = connection.execute(prepare(statement), values)
            names, rows = tuple(result.keys()), result.all()
        for row in rows:
            dict(zip(names, row, strict=True))
        return rows

    return execute


def choose_samples(store: Store, execute: Execute) -> Samples:
    """Return the values of a task in the middle of the list."""
    (number,) = execute("SELECT count(*) FROM task_listing", {})[0]
    columns = "name, id, repo, language, license, change_name, source, candidate, change"
    middle = f"SELECT {columns} FROM task_listing ORDER BY created_at DESC, name LIMIT 1 OFFSET :n"  # noqa: S608
    name, key, repo, language, license_name, change, source, candidate, seq = execute(middle, {"n": number // 2})[0]
    statement = store.get(Task, key).problem_statement
    (pull_request,) = execute("SELECT pull_request FROM change WHERE seq = :seq", {"seq": seq})[0]
    rare = sorted(set(re.findall(r"[a-z]{6,}", statement)), key=lambda word: (-len(word), word))
    return Samples(
        task=name,
        key=key,
        repo=repo,
        language=language,
        license=license_name,
        change=change,
        source=source,
        candidate=candidate,
        pull_request=pull_request,
        words=(rare[0], rare[1]),
    )


def list_queries(store: Store, execute: Execute, artifacts: Artifacts) -> list[Query]:
    """Return all questions for one database."""
    sample = choose_samples(store, execute)
    return [
        *_list_lists(store, sample),
        *_list_single(store, artifacts, sample),
        *_list_counts(store, sample),
    ]


def _list_lists(store: Store, sample: Samples) -> list[Query]:
    filters: dict[str, tuple[TaskFilters, str]] = {
        "tasks list": (TaskFilters(), ""),
        "tasks list --repo": (TaskFilters(repo=sample.repo), f"AND lower(repo) = '{sample.repo}'"),
        "tasks list --kind": (TaskFilters(kind="injected"), "AND kind = 'injected'"),
        "tasks list --language": (
            TaskFilters(language=sample.language),
            f"AND lower(language) = '{sample.language}'",
        ),
        "tasks list --license": (
            TaskFilters(license=sample.license),
            f"AND lower(license) = '{sample.license.lower()}'",
        ),
        "tasks list --status": (TaskFilters(status="derived"), "AND status = 'derived'"),
        "tasks list --repo --kind": (
            TaskFilters(repo=sample.repo, kind="injected"),
            f"AND lower(repo) = '{sample.repo}' AND kind = 'injected'",
        ),
        NO_MATCH: (TaskFilters(changed_lines=Range(1e8, None)), "AND changed_lines >= 100000000"),
    }
    listed_rows = [
        Query(
            name=name,
            ours=partial(queries.list_tasks, store, chosen, LIMIT),
            by_hand=partial(_execute, f"{LISTED} {condition} {NEWEST}", {}),
        )
        for name, (chosen, condition) in filters.items()
    ]

    def continue_list(execute: Execute) -> Sequence[Any]:
        rows = execute("SELECT created_at, name, id FROM task_listing WHERE name = :name", {"name": sample.task})
        at, name, key = rows[0]
        behind = "AND created_at <= :at AND (created_at < :at OR name > :name OR (name = :name AND id > :id))"
        return execute(f"{LISTED} {behind} {NEWEST}", {"at": at, "name": name, "id": key})

    after = partial(queries.list_tasks, store, TaskFilters(), LIMIT, sample.task)
    return [*listed_rows, Query(name="tasks list --after, in the middle", ours=after, by_hand=continue_list)]


def _list_single(store: Store, artifacts: Artifacts, sample: Samples) -> list[Query]:
    def show(word: str) -> object:
        return queries.look_up_task(store, artifacts, word)

    def show_by_hand(condition: str, word: str, execute: Execute) -> object:
        listed = execute(f"SELECT * FROM task_listing WHERE {condition}", {"word": word, "end": word + "g"})  # noqa: S608
        key = listed[0][2]
        (task,) = execute("SELECT body, parent, candidate FROM task WHERE id = :id", {"id": key})
        chain = (
            "SELECT g.body FROM change h JOIN tagging g ON g.id = h.tagging WHERE h.result = :candidate",
            "SELECT body FROM verdict WHERE parent = :parent ORDER BY seq DESC LIMIT 1",
            "SELECT parent FROM verification WHERE id = :parent",
            "SELECT parent FROM candidate WHERE id = :candidate",
        )
        values = {"parent": task[1], "candidate": task[2]}
        return [task, *(execute(statement, values) for statement in chain)]

    def explain_by_hand(execute: Execute) -> object:
        values = {"name": sample.change, "source": sample.source, "id": sample.pull_request}
        named = "SELECT * FROM change_listing WHERE name = :name"
        events = (
            "SELECT stage, ok, reason, detail, seconds, at, kind FROM event "
            "WHERE source = :source AND name = :name ORDER BY seq"
        )
        rest = (
            named,
            events,
            "SELECT id FROM task_listing WHERE source = :source AND change_name = :name ORDER BY name",
            "SELECT g.body FROM change_listing h JOIN tagging g ON g.id = h.tags WHERE h.pull_request = :id",
            "SELECT e.body FROM change_listing h JOIN environment e ON e.id = h.environment WHERE h.pull_request = :id",
            "SELECT j.body FROM change_listing h JOIN verdict j ON j.id = h.verdict WHERE h.pull_request = :id",
            "SELECT body FROM pull_request WHERE id = :id",
        )
        return [execute(statement, values) for statement in rest]

    prefix = sample.key[:12]
    order = "ORDER BY badness, created_at DESC, name, id LIMIT 20"
    if store.engine.dialect.name == "sqlite":
        hits = "SELECT rowid AS task, rank AS badness FROM task_search WHERE task_search MATCH :words"
        words = {"words": " ".join(f'"{word}"*' for word in sample.words)}
    else:
        hits = (
            "SELECT task, -ts_rank(words, CAST(:words AS tsquery)) AS badness FROM task_search "
            "WHERE words @@ CAST(:words AS tsquery)"
        )
        words = {"words": " & ".join(f"'{word}':*" for word in sample.words)}
    chosen = f"SELECT {COLUMNS} FROM ({hits}) hits JOIN task_listing USING (task) {order}"  # noqa: S608 - constants
    search = f"SELECT found.*, task.body FROM ({chosen}) found JOIN task ON task.id = found.id"  # noqa: S608
    return [
        Query(
            name="tasks show NAME",
            ours=partial(show, sample.task),
            by_hand=partial(show_by_hand, "name = :word AND :end <> ''", sample.task),
        ),
        Query(
            name="tasks show ID",
            ours=partial(show, prefix),
            by_hand=partial(show_by_hand, "id >= :word AND id < :end", prefix),
        ),
        Query(
            name="why NAME",
            ours=partial(queries.look_up_change, store, sample.change),
            by_hand=explain_by_hand,
        ),
        Query(
            name="tasks search",
            ours=partial(queries.search_tasks, store, list(sample.words), TaskFilters(), LIMIT),
            by_hand=partial(_execute, search, words),
        ),
    ]


def _list_counts(store: Store, sample: Samples) -> list[Query]:
    scope = Scope(kinds=get_prerequisites(DEFAULT_KINDS))
    language = f"environment <> 'simulated' AND lower(language) = '{sample.language}'"
    chosen = TaskFilters(language=sample.language)
    funnel = (
        "SELECT rejected_by, reason, count(*), count(candidate), count(environment), count(verification), "
        "count(verdict), count(task), count(certificate) FROM change_listing GROUP BY rejected_by, reason"
    )
    by_kind = (
        "SELECT kind, status, reason, count(*), count(task), count(DISTINCT change) FROM derivation_listing "
        "GROUP BY kind, status, reason"
    )
    left = (
        "SELECT count(*) FROM change_listing WHERE candidate IS NOT NULL AND test_lines > 0 AND verdict IS NULL "
        "AND (rejected_by IS NULL OR rejected_by NOT IN ('build', 'verify', 'judge'))"
    )
    return [
        Query(
            name="tasks list --kind --count",
            ours=partial(queries.count_tasks, store, TaskFilters(kind="injected")),
            by_hand=partial(
                _execute, "SELECT count(*) FROM task_listing WHERE environment <> 'simulated' AND kind = 'injected'", {}
            ),
        ),
        Query(
            name="tasks stats",
            ours=partial(queries.compute_stats, store, TaskFilters()),
            by_hand=partial(_count_by_hand, "environment <> 'simulated'"),
        ),
        Query(
            name="tasks stats --language",
            ours=partial(queries.compute_stats, store, chosen),
            by_hand=partial(_count_by_hand, language),
        ),
        Query(
            name="histograms of tasks stats",
            ours=partial(count_bins, store, TaskFilters()),
            by_hand=partial(_execute, _build_histograms("environment <> 'simulated'"), {}),
        ),
        Query(
            name="histograms of tasks stats --language",
            ours=partial(count_bins, store, chosen),
            by_hand=partial(_execute, _build_histograms(language), {}),
        ),
        Query(
            name="facets of a list --language",
            ours=partial(page_queries.count_facets, store, chosen, FACETS),
            by_hand=partial(
                _execute,
                f"SELECT {', '.join(FACETS)} FROM task_listing WHERE {language} LIMIT {page_queries.MAX_COUNTED + 1}",  # noqa: S608
                {},
            ),
        ),
        Query(
            name="tasks yields",
            ours=partial(derivation_counts.count_by_change, store),
            by_hand=partial(
                _execute,
                "SELECT source, name, kind, status, reason FROM derivation_listing "
                "ORDER BY merged_at DESC, name, kind, task_name",
                {},
            ),
        ),
        Query(name="funnel", ours=partial(queries.compute_funnel, store), by_hand=partial(_execute, funnel, {})),
        Query(
            name="funnel by kind",
            ours=partial(derivation_counts.count_by_kind, store),
            by_hand=partial(_execute, by_kind, {}),
        ),
        Query(
            name="what a rerun has left",
            ours=lambda: store.count_lineages(scope),
            by_hand=partial(_execute, left, {}),
        ),
    ]


def _execute(statement: str, values: Mapping[str, Any], execute: Execute) -> Sequence[Any]:
    return execute(statement, values)


def _count_by_hand(condition: str, execute: Execute) -> object:
    """Count the tasks of a condition by each facet, and find their median."""
    chosen = f"FROM task_listing WHERE {condition}"
    middle = f"ORDER BY n_fail_to_pass LIMIT 1 OFFSET (SELECT count(*) / 2 {chosen})"
    return [
        *(
            execute(f"SELECT {name}, count(*) {chosen} GROUP BY {name} ORDER BY 2 DESC", {})
            for name in ("status", "kind", "language", "repo", "license")
        ),
        execute(f"SELECT n_fail_to_pass {chosen} {middle}", {}),
    ]


def _build_histograms(condition: str) -> str:
    bins = (f"count(CASE WHEN {name} >= {edge} THEN 1 END)" for name, edges in EDGES.items() for edge in edges)
    return f"SELECT {', '.join(bins)} FROM task_listing WHERE {condition}"  # noqa: S608 - constants
