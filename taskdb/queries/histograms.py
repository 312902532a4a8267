"""Histograms of the numeric columns of tasks, counted by the database in a single pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, case, func, select

from taskdb.queries.task_filters import TASKS, TaskFilters, keep_queries
from taskdb.store import Store

_COUNTS = (0.0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_SHARES = tuple(at / 10 for at in range(11))
EDGES: Mapping[str, Sequence[float]] = {
    "n_fail_to_pass": _COUNTS,
    "changed_lines": _COUNTS,
    "changed_files": _COUNTS,
    "statement_tokens": _COUNTS,
    "material_files": _COUNTS,
    "material_bytes": (0.0, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000),
    "test_seconds": (0.0, 0.1, 0.2, 0.5, *_COUNTS[1:12]),
    "strength": _SHARES,
    "underspecified": _SHARES,
    "unfair_tests": _SHARES,
    "flaky_bound": _SHARES,
}
"""Column -> lower bounds of its bins. The last bin has no upper bound; that of shares holds those of exactly 1."""


@dataclass(frozen=True)
class HistogramBin:
    """Number of tasks whose value is at least `low` and below `high` (None: unbounded)."""

    low: float
    high: float | None
    n: int


def count_bins(store: Store, filters: TaskFilters) -> dict[str, list[HistogramBin]]:
    """Return column -> bins from the first to the last that has tasks; tasks without the value are in none."""
    with store.read_transaction() as connection:
        row = connection.execute(_build_query(filters)).one()._mapping
    counts = {}
    for name, edges in EDGES.items():
        above = [int(row[f"{name}_{at}"]) for at in range(len(edges))] + [0]
        bins = [
            HistogramBin(edge, edges[at + 1] if at + 1 < len(edges) else None, above[at] - above[at + 1])
            for at, edge in enumerate(edges)
        ]
        counts[name] = _trim(bins)
    return counts


@keep_queries
def _build_query(filters: TaskFilters) -> Select[Any]:
    counted: list[Any] = [
        func.count(case((TASKS.c[name] >= edge, 1))).label(f"{name}_{at}")
        for name, edges in EDGES.items()
        for at, edge in enumerate(edges)
    ]
    return filters.apply(select(*counted).select_from(TASKS))


def _trim(bins: Sequence[HistogramBin]) -> list[HistogramBin]:
    filled = [at for at, bucket in enumerate(bins) if bucket.n]
    return list(bins[filled[0] : filled[-1] + 1]) if filled else []
