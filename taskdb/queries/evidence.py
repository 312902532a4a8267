"""Evidence on a task and its words: gradings of the gold submission, and the rank of a verdict among the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import column, func, select, table, text

from core.text import format_probability
from taskdb.queries.task_filters import TASKS, TaskFilters
from taskdb.records import Certificate, Task
from taskdb.records.difficulty import compute_wilson_interval
from taskdb.records.verdicts import EVIDENCE, has_evidence
from taskdb.store import Store

SHOWN_BOUND = 0.1
"""Bound on the failures of gold below which it is shown; 35 gradings without a failure give it.

After the usual three it is 0.56, which only restates that they were few, and reads as a defect of the task.
"""
MIN_RANKED = 20
"""Judged tasks without which a verdict has no rank."""
MAX_RANKED = 5000
"""Newest tasks among which a verdict is ranked, so that a page of a large database does not wait for all."""
SCORES: Mapping[str, str] = {"underspecified": "underspecified", "unfair_tests": "unfair tests"}
"""Probability of a verdict -> its name in text."""


@dataclass(frozen=True)
class VerdictRanks:
    """Ranks of the probabilities of a verdict.

    Attributes:
        tasks: number of judged tasks.
        lower: probability -> number of them with a lower value.
    """

    tasks: int
    lower: Mapping[str, int]

    def describe(self, name: str) -> str:
        """Return the rank of a probability, such as `more than 92 % of 120 tasks here`."""
        return f"more than {100 * self.lower[name] // self.tasks} % of {self.tasks} tasks here"


def load_gold_values(store: Store, task: str) -> tuple[float, ...]:
    """Return the values of gold in the newest certificate of a task (id); empty where it has none."""
    with store.read_transaction() as connection:
        key = connection.execute(_CERTIFICATE, {"task": task}).scalar()
    return store.get(Certificate, key).gold if key else ()


def describe_gold(values: Sequence[float]) -> str:
    """Return how often gold earned 1, such as `3 of 3`, with a bound on its failures where that is informative.

    The bound is the upper end of Wilson's 95 % interval. It is shown when a grading failed, or below SHOWN_BOUND.
    """
    n, n_passed = len(values), sum(value == 1 for value in values)
    bound = compute_wilson_interval(n - n_passed, n)[1]
    seen = f"{n_passed} of {n}"
    if n_passed == n and bound >= SHOWN_BOUND:
        return seen
    return f"{seen}, fails with a probability of at most {format_probability(bound)}"


def describe_forger(task: Task) -> str | None:
    """Return the odds of a submission that forges results, and of one that does so in a single test; None for none.

    The odds of earlier versions do not hold where they rest on copies of tests, which a submission can compare.
    """
    if task.control_bound is None:
        return None
    if task.rests_on_copies:
        return "unknown (copies)"
    worst = task.worst_block_bound
    odds = format_probability(task.control_bound)
    return odds if worst is None else f"{odds}, the worst test {format_probability(worst)}"


def rank_verdict(store: Store, verdict: Mapping[str, Any] | None) -> VerdictRanks | None:
    """Return the ranks of a verdict (JSON data) among the newest tasks; None with fewer judged ones than MIN_RANKED."""
    if verdict is None:
        return None
    with store.read_transaction() as connection:
        row = connection.execute(_RANKS, {name: verdict[name] for name in SCORES}).one()
    if row.n < MIN_RANKED:
        return None
    return VerdictRanks(int(row.n), {name: int(getattr(row, name)) for name in SCORES})


def describe_scores(verdict: Mapping[str, Any], ranks: VerdictRanks | None) -> dict[str, str]:
    """Return name in text -> description of the probabilities of a verdict that can be read as something.

    With evidence it is the probability, without any the rank among the tasks, and without a rank it is left out.
    """
    described = {}
    for name, title in SCORES.items():
        if has_evidence(verdict, name):
            described[title] = f"probability {format_probability(verdict[name])}"
        elif ranks is not None:
            described[title] = ranks.describe(name)
    return described


def count_with_evidence(store: Store, filters: TaskFilters, name: str, least: float) -> int:
    """Return the number of selected tasks with a probability of at least `least` and a finding that is evidence of it.

    Args:
        store: the database.
        filters: the tasks to select.
        name: `underspecified` or `unfair_tests`.
        least: the smallest probability.
    """
    rules = sorted(EVIDENCE[name])
    quoted = select(_FINDINGS.c.candidate).where(_FINDINGS.c.rule.in_(rules))
    query = filters.apply(select(func.count()).select_from(TASKS))
    query = query.where(TASKS.c[name] >= least, TASKS.c.candidate.in_(quoted))
    with store.read_transaction() as connection:
        return int(connection.execute(query).scalar_one())


_FINDINGS = table("findings", column("candidate"), column("rule"))
_CERTIFICATE = text("SELECT id FROM certificate WHERE parent = :task ORDER BY seq DESC LIMIT 1")
_RANKS = text(f"""
    SELECT count(*) AS n,
           coalesce(sum(CASE WHEN underspecified < :underspecified THEN 1 ELSE 0 END), 0) AS underspecified,
           coalesce(sum(CASE WHEN unfair_tests < :unfair_tests THEN 1 ELSE 0 END), 0) AS unfair_tests
    FROM (SELECT underspecified, unfair_tests FROM tasks ORDER BY created_at DESC, name LIMIT {MAX_RANKED}) newest
    WHERE unfair_tests IS NOT NULL""")  # noqa: S608 - a constant number
