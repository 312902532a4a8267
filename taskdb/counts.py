"""Counters of changes, kinds and tasks, maintained in the transactions that change them.

They answer the questions that would otherwise read every row: the funnel, the yields, and the facets of all tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, column, select, table, text

from taskdb.records import Stage, TestOrigin
from taskdb.schema.batches import fetch_tuples
from taskdb.schema.task_columns import TaskStatus
from taskdb.schema.word_lists import match_words

Row = Mapping[str, Any]
OUTPUTS: dict[Stage, str] = {
    Stage.MINE: "candidate",
    Stage.BUILD: "environment",
    Stage.VERIFY: "verification",
    Stage.JUDGE: "verdict",
    Stage.DERIVE: "task",
    Stage.CERTIFY: "certificate",
}
"""Stage -> column of the view `changes` with its output."""
DIMENSIONS = ("", "repo", "change_kind", "size")
"""Dimensions that changes are counted by; the empty dimension counts them all.

The counters of kinds have the dimension `kind`, those of
milliseconds of stages `seconds`."""
FACETS = ("status", "kind", "language", "repo", "license", "change_kind", "split", "audited", "source")
HISTOGRAM = "n_fail_to_pass"

FunnelKey = tuple[str, str, str, str, str, str]
TaskKey = tuple[str, str, int]


class Deltas:
    """Differences that a transaction adds to the counters."""

    def __init__(self) -> None:
        self.funnel: Counter[FunnelKey] = Counter()
        self.tasks: Counter[TaskKey] = Counter()

    def count_changes(self, rows: Iterable[Row], sign: int) -> None:
        """Add (sign 1) or remove (-1) rows of `change_listing`."""
        for row in rows:
            outputs = "".join(column[0] if row[column] is not None else "-" for column in OUTPUTS.values())
            for dimension in DIMENSIONS:
                value = (row[dimension] or "-") if dimension else ""
                for source in ("", row["source"]):
                    key = (source, dimension, value, outputs, row["rejected_by"] or "", row["reason"] or "")
                    self.funnel[key] += sign

    def count_derivations(self, rows: Iterable[Row], sign: int) -> None:
        """Add or remove rows of `derivation_listing`, all of a change together."""
        seen: set[tuple[int, str]] = set()
        for row in rows:
            if row["status"] == TaskStatus.IMPORTED:
                continue
            words = [("task", ""), *([("certified", "")] if row["certificate"] else [])] if row["task"] else []
            if row["reason"]:
                words.append(("rejected", row["reason"]))
            if (row["change"], row["kind"]) not in seen:
                seen.add((row["change"], row["kind"]))
                words.append(("change", ""))
            for word, reason in words:
                for source in ("", row["source"]):
                    self.funnel[source, "kind", row["kind"], word, "", reason] += sign

    def count_tasks(self, rows: Iterable[Row], sign: int) -> None:
        """Add or remove rows of `task_listing`."""
        for row in rows:
            simulated = int(row["environment"] == "simulated" or row["tests"] != TestOrigin.HUMAN)
            for facet in (*FACETS, HISTOGRAM):
                if row[facet] is not None:
                    self.tasks[facet, str(row[facet]), simulated] += sign

    def count_seconds(self, source: str, stage: Stage, seconds: float) -> None:
        """Add the time of a stage."""
        for counted_source in ("", source):
            self.funnel[counted_source, "seconds", stage.value, "", "", ""] += round(seconds * 1000)

    def write(self, connection: Connection) -> None:
        """Add the differences to the stored counters, in an order that all writers keep."""
        for counter, columns, add, drop in (
            (self.funnel, _FUNNEL_COLUMNS, _ADD_FUNNEL, _DROP_FUNNEL),
            (self.tasks, _TASK_COLUMNS, _ADD_TASKS, _DROP_TASKS),
        ):
            changed: list[tuple[Any, int]] = sorted((key, n) for key, n in counter.items() if n)
            if changed:
                connection.execute(add, [{**dict(zip(columns, key, strict=True)), "n": n} for key, n in changed])
            if fewer := [dict(zip(columns, key, strict=True)) for key, n in changed if n < 0]:
                connection.execute(drop, fewer)


_FUNNEL_COLUMNS = ("source", "dimension", "value", "outputs", "rejected_by", "reason")
_TASK_COLUMNS = ("facet", "value", "simulated")


def _build_statements(table: str, columns: Sequence[str]) -> tuple[Any, Any]:
    names, marks = ", ".join(columns), ", ".join(f":{name}" for name in columns)
    here = " AND ".join(f"{name} = :{name}" for name in columns)
    add = f"""INSERT INTO {table} ({names}, n) VALUES ({marks}, :n)
              ON CONFLICT ({names}) DO UPDATE SET n = {table}.n + excluded.n"""  # noqa: S608 - fixed names
    return text(add), text(f"DELETE FROM {table} WHERE {here} AND n = 0")  # noqa: S608


_ADD_FUNNEL, _DROP_FUNNEL = _build_statements("funnel_count", _FUNNEL_COLUMNS)
_ADD_TASKS, _DROP_TASKS = _build_statements("task_count", _TASK_COLUMNS)


def read_funnel(connection: Connection, dimension: str, sources: Sequence[str], value: str | None = None) -> list[Any]:
    """Return counters of a dimension as rows `source, value, outputs, rejected_by, reason, n`.

    Without sources they are those of all sources, whose `source` is empty.
    """
    columns = _FUNNEL.c
    query = select(columns.source, columns.value, columns.outputs, columns.rejected_by, columns.reason, columns.n)
    query = query.where(columns.dimension == dimension, match_words(columns.source, sources or ("",)))
    return list(connection.execute(query if value is None else query.where(columns.value == value)))


_FUNNEL = table("funnel_count", *map(column, (*_FUNNEL_COLUMNS, "n")))


def read_task_counts(connection: Connection, facet: str) -> dict[str, int]:
    """Return value -> number of tasks that empty filters select."""
    return read_facet_counts(connection, (facet,))[facet]


def read_facet_counts(connection: Connection, facets: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return facet -> value -> number of tasks that empty filters select."""
    facet_counts: dict[str, dict[str, int]] = {facet: {} for facet in facets}
    for facet, value, n in fetch_tuples(connection, _READ_FACETS, {"facets": list(facets)}):
        facet_counts[facet][value] = n
    return facet_counts


_READ_FACETS = text("SELECT facet, value, n FROM task_count WHERE facet IN :facets AND simulated = 0").bindparams(
    bindparam("facets", expanding=True)
)


def list_sources(connection: Connection) -> list[str]:
    """Return the sources of all changes."""
    query = text("SELECT DISTINCT source FROM funnel_count WHERE dimension = '' AND source <> '' ORDER BY source")
    return list(connection.execute(query).scalars())


def count_candidates_of(connection: Connection, sources: Sequence[str]) -> dict[str, int]:
    """Return source -> number of candidates; the empty source stands for all."""
    counts = Counter[str](dict.fromkeys(sources, 0))
    for row in read_funnel(connection, "", sources):
        counts[row.source] += row.n if row.outputs.startswith("c") else 0
    return counts
