"""Rejection sampling of a set of trajectories: reward, rules, then duplicates, caps and the mix of scaffolds."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from core.settings.agents import SelectionSettings
from samplers.selection.normalisation import hash_submission
from samplers.selection.rules import RULES, list_broken_rules
from taskdb.records import Kind
from taskdb.records.rollouts import Trajectory, TrajectoryRole

UNSCORED = "unscored"
REWARD = "reward"
RUBRIC = "rubric"
DUPLICATE = "duplicate"
PER_TASK = "per_task"
MIX = "mix"
ROLLOUT = "rollout"
"""Reason of a sub-agent's or side trajectory whose rollout has no selected main trajectory."""
RULE_NAMES = (UNSCORED, REWARD, *dict.fromkeys(rule.name for rule in RULES), RUBRIC, DUPLICATE, PER_TASK, MIX)
"""Reasons in the order in which they refuse."""


@dataclass(frozen=True, kw_only=True)
class SelectionCandidate:
    """A trajectory with the facts that the rules need of its rollout and task."""

    trajectory: Trajectory
    task: str
    """Id of the task or scenario."""
    kind: Kind | None
    """Of the task; None for a scenario."""
    submission: bytes


@dataclass(frozen=True, kw_only=True)
class SelectionLimits:
    """Limits of a set, and the limits that are rules only where they are given."""

    per_task: int | None = None
    mix: Mapping[str, float] = field(default_factory=dict)
    """Scaffold -> share, more than 0; empty for any mix."""
    rubric: str = ""
    """Text of the rubric; part of the text that identifies a selection."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Rule that refused a trajectory, with its value where any."""

    rule: str
    value: float | None = None


@dataclass(frozen=True, kw_only=True)
class RuleCount:
    """Effect of a rule on the main trajectories."""

    rule: str
    before: int
    after: int
    alone: int
    """Those that no other rule refuses."""


@dataclass(frozen=True, kw_only=True)
class SelectionOutcome:
    """Refusal of each trajectory (id), None where it is selected; and the effect of each rule in order."""

    refusals: Mapping[str, Refusal | None]
    counts: Sequence[RuleCount]


RubricCheck = Callable[[SelectionCandidate], float]
"""Returns the share of a rubric's items that a trajectory does not meet."""


def select_trajectories(
    candidates: Sequence[SelectionCandidate],
    selection: SelectionSettings,
    limits: SelectionLimits,
    check_rubric: RubricCheck | None = None,
) -> SelectionOutcome:
    """Return which trajectories are selected.

    Main trajectories pass all rules. The others pass the rules that look at the actions that they did, and are refused
    with their rollout.
    """
    main = [candidate for candidate in candidates if candidate.trajectory.role is TrajectoryRole.MAIN]
    broken = {candidate.trajectory.id: _list_refusals(candidate, selection) for candidate in main}
    kept = [candidate for candidate in main if not broken[candidate.trajectory.id]]
    # The rubric costs calls of a model, so it is applied only to trajectories that pass the rules before it.
    if check_rubric is not None:
        for candidate in kept:
            if (share := check_rubric(candidate)) > selection.rubric:
                broken[candidate.trajectory.id].append(Refusal(rule=RUBRIC, value=share))
        kept = [candidate for candidate in kept if not broken[candidate.trajectory.id]]
    for name, keep in _list_set_rules(limits):
        passed = {candidate.trajectory.parent for candidate in keep(kept)}
        for candidate in kept:
            if candidate.trajectory.parent not in passed:
                broken[candidate.trajectory.id].append(Refusal(rule=name))
        kept = [candidate for candidate in kept if candidate.trajectory.parent in passed]
    refusals: dict[str, Refusal | None] = {key: refused[0] if refused else None for key, refused in broken.items()}
    selected = {candidate.trajectory.parent for candidate in kept}
    for candidate in candidates:
        if candidate.trajectory.role is not TrajectoryRole.MAIN:
            refusals[candidate.trajectory.id] = _refuse_other(candidate, selection, selected)
    return SelectionOutcome(refusals=refusals, counts=_count_effects(list(broken.values())))


def hash_rules(selection: SelectionSettings, limits: SelectionLimits) -> str:
    """Return the sha256 (hex) of all limits; a later one is in it where it is not the default."""
    fields = type(selection).model_fields
    values: dict[str, object] = {field.alias or name: getattr(selection, name) for name, field in fields.items()}
    if not selection.instructions:
        del values["select_instructions"]
    values |= {"per_task": limits.per_task, "mix": dict(limits.mix), "rubric": limits.rubric}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _list_refusals(candidate: SelectionCandidate, selection: SelectionSettings) -> list[Refusal]:
    value = candidate.trajectory.value
    refusals = [Refusal(rule=UNSCORED)] if value is None else []
    if value is not None and value < selection.min_value:
        refusals.append(Refusal(rule=REWARD, value=value))
    metrics = candidate.trajectory.metrics
    rules = list_broken_rules(metrics, candidate.kind, selection)
    return refusals + [Refusal(rule=rule.name, value=metrics[rule.metric]) for rule in rules]


def _refuse_other(candidate: SelectionCandidate, selection: SelectionSettings, selected: set[str]) -> Refusal | None:
    if candidate.trajectory.parent not in selected:
        return Refusal(rule=ROLLOUT)
    return next(iter(_list_refusals(candidate, selection)), None)


def _list_set_rules(
    limits: SelectionLimits,
) -> list[tuple[str, Callable[[Sequence[SelectionCandidate]], Iterable[SelectionCandidate]]]]:
    rules: list[tuple[str, Callable[[Sequence[SelectionCandidate]], Iterable[SelectionCandidate]]]] = [
        (DUPLICATE, keep_distinct)
    ]
    if limits.per_task is not None:
        most = limits.per_task
        rules.append((PER_TASK, lambda kept: cap_per_task(kept, most)))
    if limits.mix:
        rules.append((MIX, lambda kept: keep_mix(kept, limits.mix)))
    return rules


def keep_distinct(candidates: Sequence[SelectionCandidate]) -> list[SelectionCandidate]:
    """Return the first rollout of each task, scaffold and normalised submission, with its main trajectories.

    Another scaffold's way to the same patch is another conversation, which is the variety that several scaffolds are
    sampled for.
    """
    first: dict[tuple[str, str, str], str] = {}
    for candidate in sorted(candidates, key=_order_by_attempt):
        key = (candidate.task, candidate.trajectory.scaffold, hash_submission(candidate.submission))
        first.setdefault(key, candidate.trajectory.parent)
    kept = set(first.values())
    return [candidate for candidate in candidates if candidate.trajectory.parent in kept]


def cap_per_task(candidates: Sequence[SelectionCandidate], most: int) -> list[SelectionCandidate]:
    """Return the trajectories of at most `most` rollouts of each task, the scaffolds in turn, then by attempt."""
    by_task: dict[str, dict[str, dict[str, None]]] = {}
    for candidate in sorted(candidates, key=_order_by_attempt):
        by_scaffold = by_task.setdefault(candidate.task, {})
        by_scaffold.setdefault(candidate.trajectory.scaffold, {})[candidate.trajectory.parent] = None
    kept: set[str] = set()
    for scaffolds in by_task.values():
        turns = [key for turn in zip_longest(*scaffolds.values()) for key in turn if key is not None]
        kept.update(turns[:most])
    return [candidate for candidate in candidates if candidate.trajectory.parent in kept]


def keep_mix(candidates: Sequence[SelectionCandidate], mix: Mapping[str, float]) -> list[SelectionCandidate]:
    """Return the largest set of rollouts with these shares of scaffolds; a hash of their ids decides which."""
    rollouts: dict[str, dict[str, None]] = {scaffold: {} for scaffold in mix}
    for candidate in sorted(
        candidates, key=lambda candidate: hashlib.sha256(candidate.trajectory.parent.encode()).digest()
    ):
        if candidate.trajectory.scaffold in rollouts:
            rollouts[candidate.trajectory.scaffold][candidate.trajectory.parent] = None
    whole = sum(mix.values())
    total = min(len(rollouts[scaffold]) * whole / share for scaffold, share in mix.items())
    # Rounding may put a whole number just below itself: 0.29 * 100 is less than 29.
    kept = {
        key for scaffold, share in mix.items() for key in list(rollouts[scaffold])[: int(total * share / whole + 1e-9)]
    }
    return [candidate for candidate in candidates if candidate.trajectory.parent in kept]


def _order_by_attempt(candidate: SelectionCandidate) -> tuple[int, str, str]:
    return candidate.trajectory.attempt, candidate.trajectory.scaffold, candidate.trajectory.parent


def _count_effects(broken: Sequence[Sequence[Refusal]]) -> list[RuleCount]:
    """Return the effect of each rule; `broken`: the rules that refuses each main trajectory, in order."""
    first = Counter(refusals[0].rule for refusals in broken if refusals)
    alone = Counter(refusals[0].rule for refusals in broken if len({refusal.rule for refusal in refusals}) == 1)
    counts, left = [], len(broken)
    for name in RULE_NAMES:
        counts.append(RuleCount(rule=name, before=left, after=left - first[name], alone=alone[name]))
        left -= first[name]
    return counts
