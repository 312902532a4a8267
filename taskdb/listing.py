"""Maintained listings: the rows of the views `changes`, `derivations` and `tasks`, with indices that fit the questions.

The definitions are joins over the whole lineage of a change. They run for the changes that a transaction affects only;
the result is stored in the same transaction, so that reading needs no join.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, TextClause, bindparam, delete, insert, text

from taskdb.counts import Deltas
from taskdb.pending import build_state, load_states
from taskdb.records import Kind, Stage
from taskdb.records.difficulty import compute_difficulty, compute_wilson_interval, make_difficulty_key
from taskdb.schema import search, tables
from taskdb.schema.batches import split_batches
from taskdb.schema.measures import join_words
from taskdb.schema.task_columns import DECLARED, TaskStatus

T = TypeVar("T")
Values = dict[str, Any]
_MAIN_KINDS = (Kind.BUGFIX, Kind.FEATURE, Kind.PERFORMANCE)
"""Kinds whose tasks are the change itself: the first of these that exists determines the status of a change."""
_KIND_ORDER = (
    "CASE x.kind "
    + "".join(f"WHEN '{kind}' THEN {at} " for at, kind in enumerate(_MAIN_KINDS))
    + f"ELSE {len(_MAIN_KINDS)} END"
)
"""Order in which tasks and rejections of a change determine its status."""

CHANGES_DEFINITION = f"""
SELECT h.seq AS change, h.source, h.name, p.repo, p.number, p.shape, p.title, p.author, p.merged_at,
       CASE WHEN k.id IS NOT NULL THEN 'certified'
            WHEN r.id IS NOT NULL THEN 'rejected'
            WHEN t.id IS NOT NULL THEN 'derived'
            WHEN j.id IS NOT NULL THEN 'judged'
            WHEN v.id IS NOT NULL THEN 'verified'
            WHEN e.id IS NOT NULL THEN 'built'
            ELSE 'mined' END AS status,
       r.stage AS rejected_by, r.reason, r.detail,
       c.language, c.license, g.change_kind, g.size, j.set_aside,
       CASE WHEN c.tests = 'human' THEN c.test_lines END AS test_lines,
       p.id AS pull_request, c.id AS candidate, e.id AS environment, v.id AS verification, j.id AS verdict,
       t.id AS task, k.id AS certificate, r.id AS rejection, g.id AS tags
FROM change h
JOIN pull_request p ON p.id = h.pull_request
LEFT JOIN tagging g ON g.id = h.tagging
LEFT JOIN candidate c ON c.id = h.result
LEFT JOIN environment e ON e.seq = (SELECT max(x.seq) FROM environment x WHERE x.parent = c.id)
LEFT JOIN verification v ON v.seq = (SELECT max(x.seq) FROM verification x WHERE x.parent = e.id)
LEFT JOIN verdict j ON j.seq = (SELECT max(x.seq) FROM verdict x WHERE x.parent = v.id)
LEFT JOIN task t ON t.seq = (SELECT x.seq FROM task x WHERE x.parent = v.id ORDER BY {_KIND_ORDER}, x.seq DESC LIMIT 1)
LEFT JOIN certificate k ON k.seq = (SELECT max(x.seq) FROM certificate x WHERE x.parent = t.id)
LEFT JOIN rejection r ON k.id IS NULL AND r.seq = CASE
    WHEN c.id IS NULL THEN (SELECT x.seq FROM rejection x WHERE x.id = h.result)
    ELSE (SELECT x.seq FROM rejection x WHERE x.parent = coalesce(t.id, j.id, v.id, e.id, c.id)
          AND (x.stage <> 'derive' OR j.id IS NOT NULL) ORDER BY {_KIND_ORDER}, x.seq DESC LIMIT 1) END
WHERE h.seq IN :keys
"""  # noqa: S608 - of names of kinds alone
"""Rows of `change_listing` for some changes (`keys`: their `seq`)."""

# `x.kind || ''`: by its own index, a kind would be looked for among all tasks.
DERIVATIONS_DEFINITION = """
SELECT h.change, h.source, h.name, h.repo, h.merged_at, h.change_kind, h.candidate, h.verification, t.kind,
       CASE WHEN k.id IS NOT NULL THEN 'certified' WHEN r.id IS NOT NULL THEN 'rejected' ELSE 'derived' END AS status,
       r.stage AS rejected_by, r.reason, r.detail,
       t.id AS task, t.name AS task_name, k.id AS certificate, r.id AS rejection
FROM change_listing h
JOIN task t ON t.candidate = h.candidate AND t.parent IN (h.verification, h.environment, h.candidate)
LEFT JOIN certificate k ON k.seq = (SELECT max(x.seq) FROM certificate x WHERE x.parent = t.id)
LEFT JOIN rejection r ON k.id IS NULL AND r.seq = (SELECT max(x.seq) FROM rejection x WHERE x.parent = t.id)
WHERE h.change IN :keys AND t.environment <> 'imported'
  AND t.seq = (SELECT max(x.seq) FROM task x WHERE x.parent IN (h.verification, h.environment, h.candidate)
               AND x.name = t.name AND x.environment <> 'imported')
UNION ALL
SELECT h.change, h.source, h.name, h.repo, h.merged_at, h.change_kind, t.candidate, NULL, t.kind,
       'imported', NULL, NULL, NULL, t.id, t.name, NULL, NULL
FROM change_listing h
JOIN task t ON t.name = h.name AND t.source = h.source AND t.environment = 'imported'
WHERE h.change IN :keys AND h.task IS NULL
  AND t.seq = (SELECT max(x.seq) FROM task x WHERE x.name = t.name AND x.source = t.source
               AND x.environment = 'imported')
UNION ALL
SELECT h.change, h.source, h.name, h.repo, h.merged_at, h.change_kind, h.candidate, h.verification, r.kind,
       'rejected', r.stage, r.reason, r.detail, NULL, NULL, NULL, r.id
FROM change_listing h
JOIN rejection r ON r.parent IN (h.verdict, h.environment, h.candidate) AND r.kind IS NOT NULL
WHERE h.change IN :keys
  AND r.seq = (SELECT max(x.seq) FROM rejection x WHERE x.parent IN (h.verdict, h.environment, h.candidate)
               AND x.kind = r.kind)
  AND NOT EXISTS (SELECT 1 FROM task x WHERE x.parent IN (h.verification, h.environment, h.candidate)
                  AND x.kind || '' = r.kind AND x.environment <> 'imported')
"""
"""Rows of `derivation_listing` for some changes, from `change_listing`.

A task as it was published is listed until the change gives a task that was verified.
"""

_TASK_VALUES = ", ".join(
    f"{declared.sql or f't.{name}'} AS {name}" for name, declared in DECLARED.items() if declared.sql is not None
)
TASKS_DEFINITION = f"""
SELECT t.seq AS task, d.change, {_TASK_VALUES}, coalesce(k.n_gold_runs, 0) AS n_gold_runs, j.id AS verdict
FROM derivation_listing d
JOIN change_listing h ON h.change = d.change
JOIN task t ON t.id = d.task
JOIN candidate c ON c.id = t.candidate
LEFT JOIN certificate k ON k.id = d.certificate
LEFT JOIN verdict j ON j.id = h.verdict
LEFT JOIN audit a ON a.seq = (SELECT max(x.seq) FROM audit x WHERE x.parent = t.id)
WHERE d.change IN :keys
"""  # noqa: S608 - of declared expressions
"""Rows of `task_listing` for some changes, from `derivation_listing`.

`_finish_task` adds the columns that SQL does not compute.
"""

DIFFICULTY_DEFINITION = """
SELECT t.seq AS task, r.model, r.checkpoint, r.scaffold, count(*) AS n, sum(CASE WHEN r.resolved THEN 1 ELSE 0 END) AS c
FROM task t JOIN rollout r ON r.parent = t.id
WHERE t.seq IN :keys AND r.value IS NOT NULL
GROUP BY t.seq, r.model, r.checkpoint, r.scaffold
ORDER BY t.seq, r.model, r.checkpoint, r.scaffold
"""
"""Attempts of each model and scaffold at some tasks (`keys`: their `seq`)."""

_BATCH = 1000
_LISTINGS = (tables.ChangeListingRow, tables.DerivationListingRow, tables.TaskListingRow)


def compute_flaky_bound(n_gradings: int) -> float | None:
    """Return an upper bound of the probability that gold fails in a grading; None when no grading was seen.

    It is the upper end of Wilson's 95 % interval after `n_gradings` with reward 1 and none without: the gradings of a
    certificate, which are made when the lists of tests are frozen. Repeats of the verification do not count: only tests
    that passed in all of them are listed.
    """
    return round(compute_wilson_interval(0, n_gradings)[1], 6) if n_gradings else None


def refresh(connection: Connection, changes: Collection[int], deltas: Deltas | None = None) -> None:
    """Bring listings, states and counters up to date for some changes (`seq`), in the caller's transaction.

    Args:
        connection: a write transaction; on PostgreSQL it holds the changes' rows.
        changes: the changes.
        deltas: differences of the counters to be written with those of the refresh.
    """
    deltas = deltas or Deltas()
    # In ascending order, as everywhere: two writers that lock the same changes never wait in a circle.
    for keys in split_batches(sorted(changes), _BATCH):
        # PostgreSQL's writers run side by side: of two for the same change the second reads what the first has written.
        if connection.dialect.name == "postgresql":
            _execute(connection, "SELECT seq FROM change WHERE seq IN :keys ORDER BY seq FOR NO KEY UPDATE", keys)
        _refresh_batch(connection, keys, deltas)
    deltas.write(connection)


def rebuild(connection: Connection) -> None:
    """Write listings, states, counters and the index of words again, from the records, in the caller's transaction."""
    for row in (*_LISTINGS, tables.ChangeStateRow, tables.FunnelCountRow, tables.TaskCountRow):
        connection.execute(delete(_get_table(row)))
    deltas, last = Deltas(), 0
    query = text("SELECT seq FROM change WHERE seq > :last ORDER BY seq LIMIT :most")
    # By batches of the key, since a database of a million changes does not fit into memory.
    while keys := list(connection.execute(query, {"last": last, "most": _BATCH}).scalars()):
        _refresh_batch(connection, keys, deltas, fresh=True)
        last = keys[-1]
    seconds = text("SELECT source, stage, sum(seconds) AS seconds FROM event GROUP BY source, stage")
    for spent in connection.execute(seconds):
        deltas.count_seconds(spent.source, Stage(spent.stage), spent.seconds)
    deltas.write(connection)
    search.rebuild_index(connection)


def _refresh_batch(connection: Connection, keys: Sequence[int], deltas: Deltas, *, fresh: bool = False) -> None:
    """Write the listed rows of some changes where they differ; `fresh`: none of them is listed yet."""
    before: list[list[Values]] = [[] if fresh else _read_listed(connection, row, keys) for row in _LISTINGS]
    changes = _execute(connection, CHANGES_DEFINITION, keys)
    old_states = {row["change"]: row["state"] for row in before[0]}
    # The state follows from the rows of the change's kinds, which are not listed yet.
    for row in changes:
        row["state"] = old_states.get(row["change"])
    _replace(connection, _LISTINGS[0], before[0], changes)
    derivations = _execute(connection, DERIVATIONS_DEFINITION, keys)
    _replace(connection, _LISTINGS[1], before[1], derivations)
    tasks = _execute(connection, TASKS_DEFINITION, keys)
    rates = _read_difficulty(connection, [row["task"] for row in tasks])
    findings = _read_findings(connection, {row["verdict"] for row in tasks} - {None})
    tasks = [_finish_task(row, rates.get(row["task"], {}), findings) for row in tasks]
    _replace(connection, _LISTINGS[2], before[2], tasks)
    _set_states(connection, changes, derivations)
    # Counters are moved by the difference, as counting all rows again would take longer than the write itself.
    for rows, sign in ((before, -1), ([changes, derivations, tasks], 1)):
        deltas.count_changes(rows[0], sign)
        deltas.count_derivations(rows[1], sign)
        deltas.count_tasks(rows[2], sign)


def _set_states(connection: Connection, changes: Sequence[Values], derivations: Sequence[Values]) -> None:
    derived: dict[int, list[Values]] = {}
    for derivation in derivations:
        # A task as it was published is no result of the change, and nothing of it is pending.
        if derivation["status"] == TaskStatus.IMPORTED:
            continue
        derived.setdefault(derivation["change"], []).append(derivation)
    states = {
        row["change"]: build_state(row, derived.get(row["change"], ()))
        for row in changes
        if row["candidate"] is not None
    }
    known = load_states(connection, list(states.values()))
    now = {row["change"]: known[states[row["change"]]] if row["change"] in states else None for row in changes}
    if moved := [{"key": r["change"], "at": now[r["change"]]} for r in changes if r["state"] != now[r["change"]]]:
        connection.execute(text("UPDATE change_listing SET state = :at WHERE change = :key"), moved)


def find_affected_changes(connection: Connection, results: Iterable[str]) -> set[int]:
    """Return the changes (`seq`) whose newest result is among some candidates or rejections (ids)."""
    query = _prepare("SELECT seq FROM change WHERE result IN :keys")
    return {
        seq
        for keys in split_batches(sorted(set(results)), _BATCH)
        for seq in connection.execute(query, {"keys": keys}).scalars()
    }


def _get_table(row: type[Any]) -> Table:
    return tables.METADATA.tables[str(row.__tablename__)]


def _execute(connection: Connection, query: str, keys: Sequence[int]) -> list[Values]:
    return [dict(row) for row in connection.execute(_prepare(query), {"keys": list(keys)}).mappings()]


@cache
def _prepare(query: str) -> TextClause:
    return text(query).bindparams(bindparam("keys", expanding=True))


def _read_difficulty(connection: Connection, tasks: Sequence[int]) -> dict[int, Values]:
    """Return the pass rates of tasks that were attempted: `seq` -> model and scaffold -> counts and interval."""
    difficulty: dict[int, Values] = {}
    for row in _execute(connection, DIFFICULTY_DEFINITION, tasks) if tasks else ():
        key = make_difficulty_key(row["model"], row["checkpoint"], row["scaffold"])
        difficulty.setdefault(row["task"], {})[key] = compute_difficulty(int(row["n"]), int(row["c"])).model_dump()
    return difficulty


def _read_findings(connection: Connection, verdicts: Collection[str]) -> dict[str, str]:
    """Return verdict -> rules of its findings, as text, for those verdicts that have any."""
    rules: dict[str, list[str]] = {}
    for keys in split_batches(sorted(verdicts), _BATCH):
        for verdict, rule in connection.execute(_prepare(_FINDINGS), {"keys": keys}):
            rules.setdefault(verdict, []).append(rule)
    return {verdict: join_words(words) for verdict, words in rules.items()}


_FINDINGS = "SELECT verdict, rule FROM finding WHERE verdict IN :keys"


def _finish_task(values: Values, rates: Values, findings: Mapping[str, str]) -> Values:
    verdict = values.pop("verdict")
    return values | {
        "findings": None if verdict is None else findings.get(verdict, ""),
        "flaky_bound": compute_flaky_bound(values.pop("n_gold_runs")),
        "difficulty": json.dumps(rates, sort_keys=True),
    }


def _read_listed(connection: Connection, row: type[Any], keys: Sequence[int]) -> list[Values]:
    query = _build_listed_query(str(row.__tablename__))
    return [dict(listed) for listed in connection.execute(query, {"keys": list(keys)}).mappings()]


@cache
def _build_listed_query(name: str) -> TextClause:
    columns = ", ".join(column.name for column in tables.METADATA.tables[name].columns if column.name != "seq")
    # Names of tables cannot be bound parameters; these are our own.
    return _prepare(f"SELECT {columns} FROM {name} WHERE change IN :keys")  # noqa: S608


def _replace(connection: Connection, row: type[Any], before: Sequence[Values], after: Sequence[Values]) -> None:
    """Replace the listed rows of the changes that differ."""
    old, new = _group_by_change(before), _group_by_change(after)
    # Rows that stay the same are not written, so that an update touches few pages of the indices.
    changed = [key for key in old | new if _make_set(old.get(key, ())) != _make_set(new.get(key, ()))]
    table = _get_table(row)
    if gone := [key for key in changed if key in old]:
        connection.execute(delete(table).where(table.c.change.in_(bindparam("keys", expanding=True))), {"keys": gone})
    if added := [values for key in changed for values in new.get(key, ())]:
        connection.execute(insert(table), added)


def _group_by_change(rows: Sequence[Values]) -> dict[int, list[Values]]:
    values: dict[int, list[Values]] = {}
    for row in rows:
        values.setdefault(row["change"], []).append(row)
    return values


def _make_set(rows: Sequence[Values]) -> set[tuple[tuple[str, Any], ...]]:
    return {tuple(sorted(row.items())) for row in rows}
