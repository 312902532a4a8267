"""Win rate of an agent (a model in a scaffold) against another, paired by task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import InputError
from core.text import format_count
from evaluation.statistics.wins import PairedUnit, compute_win_rate
from taskdb.queries.families import find_families
from taskdb.queries.trajectories import Agent, load_rollouts_of, resolve_agent
from taskdb.records.rollouts import Rollout
from taskdb.store import Store

MEASURES: Mapping[str, Callable[[Rollout], float | None]] = {
    "value": lambda rollout: rollout.value,
    "resolved": lambda rollout: None if rollout.value is None else float(rollout.resolved),
}
"""Name -> number of a rollout by which agents are compared; None where it has no result."""


@dataclass(frozen=True, kw_only=True)
class AgentComparison:
    """Rows of a comparison, one for each measure, and remarks for people."""

    rows: Sequence[Mapping[str, Any]]
    remarks: Sequence[str]


def compare_agents(
    store: Store,
    words: tuple[str, str],
    *,
    environments: Sequence[str] | None,
    tasks: Collection[str] | None,
) -> AgentComparison:
    """Return the win rate of the first of two agents, by each measure.

    Args:
        store: the database.
        words: names of both agents, as `resolve_agent` takes them.
        environments: environments of rollouts; None for all.
        tasks: ids of tasks and scenarios; None for all.

    Raises:
        InputError: an agent is unknown, both are the same, or no task has results of both.
    """
    first, second = agents = tuple(resolve_agent(store, word) for word in words)
    if first == second:
        raise InputError(f"both names are of {first.name}", advice="name two agents, such as MODEL/SCAFFOLD")
    rollouts = [_group_rollouts(store, agent, environments, tasks) for agent in agents]
    subjects = sorted(rollouts[0].keys() | rollouts[1].keys())
    families = find_families(store, subjects)
    rows = []
    for name, get_number in MEASURES.items():
        units = [
            PairedUnit(
                family=families[subject],
                first=[get_number(rollout) for rollout in rollouts[0].get(subject, ())],
                second=[get_number(rollout) for rollout in rollouts[1].get(subject, ())],
            )
            for subject in subjects
        ]
        if (rate := compute_win_rate(units)) is None:
            raise InputError(f"no task has results of both {first.name} and {second.name}", advice="sample both")
        rows.append({"measure": name, "first": first.name, "second": second.name, **rate.to_json()})
    return AgentComparison(rows=rows, remarks=_list_remarks(rollouts))


def _group_rollouts(
    store: Store, agent: Agent, environments: Sequence[str] | None, tasks: Collection[str] | None
) -> dict[str, list[Rollout]]:
    """Return task or scenario (id) -> a rollout for each attempt: the newest with a value, else the newest."""
    by_plan: dict[str, Rollout] = {}
    for rollout in load_rollouts_of(store, agent, environments=environments, tasks=tasks):
        known = by_plan.get(rollout.plan)
        if known is None or rollout.value is not None or known.value is None:
            by_plan[rollout.plan] = rollout
    groups: dict[str, list[Rollout]] = {}
    for rollout in by_plan.values():
        groups.setdefault(rollout.parent, []).append(rollout)
    return groups


def _list_remarks(rollouts: Sequence[Mapping[str, Sequence[Rollout]]]) -> list[str]:
    """Return the lines on tasks that several versions of the grader, or an unknown one, scored."""
    graders: dict[str, set[str]] = {}
    for groups in rollouts:
        for subject, some in groups.items():
            versions = {rollout.score.grader for rollout in some if rollout.score is not None}
            graders.setdefault(subject, set()).update(versions)
    mixed = sum(len(versions) > 1 for versions in graders.values())
    unknown = sum("" in versions for versions in graders.values())
    remarks = []
    if mixed:
        remarks.append(f"mixed-graders: {format_count(mixed, 'task')} with scores of several versions of the grader")
    if unknown:
        remarks.append(f"unknown-grader: {format_count(unknown, 'task')} with scores of an unknown version of it")
    return remarks
