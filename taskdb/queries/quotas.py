"""Numbers by repository that quotas limit."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import text

if TYPE_CHECKING:
    from taskdb.store import Store

_CERTIFIED = text("SELECT repo, count(*) AS n FROM task_listing WHERE status = 'certified' GROUP BY repo")
# A review needs no environment: its change has derivations alone.
_CHANGES = text("""
    SELECT repo, is_begun, is_open, count(*) AS n FROM (
        SELECT h.repo,
               CASE WHEN h.environment IS NOT NULL OR h.rejected_by IS NOT NULL OR d.change IS NOT NULL
                    THEN 1 ELSE 0 END AS is_begun,
               CASE WHEN h.rejected_by IS NULL AND d.certified IS NULL THEN 1 ELSE 0 END AS is_open
        FROM change_listing h
        LEFT JOIN (SELECT change, max(CASE WHEN certificate IS NOT NULL THEN 1 END) AS certified
                   FROM derivation_listing GROUP BY change) d ON d.change = h.change
        WHERE h.candidate IS NOT NULL) states
    GROUP BY repo, is_begun, is_open""")


class RepositoryCounts(NamedTuple):
    """Repository -> number."""

    begun: Counter[str]
    """Changes with a result after the miner."""
    unbegun: Counter[str]
    """Candidates without one."""
    open: Counter[str]
    """Candidates that are neither rejected nor certified, those without a result among them."""
    certified: Counter[str]
    """Certified tasks."""


def count_by_repository(store: Store) -> RepositoryCounts:
    """Return the numbers of all repositories of the database."""
    with store.read_transaction() as connection:
        rows = connection.execute(_CHANGES).all()
        certified = Counter({row.repo: row.n for row in connection.execute(_CERTIFIED)})
    counts = RepositoryCounts(Counter(), Counter(), Counter(), certified)
    for row in rows:
        (counts.begun if row.is_begun else counts.unbegun)[row.repo] += row.n
        counts.open[row.repo] += row.n if row.is_open else 0
    return counts
