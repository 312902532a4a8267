"""Find how many nodes a goal takes."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scale.plan import Plan
from benchmarks.scale.profile import Profile
from benchmarks.scale.simulate import Outcome, simulate
from core.errors import InputError

MOST_SANDBOXES = 200_000
PRECISION = 0.05
"""Share of the nodes by which the answer may be too large."""


def find_nodes(plan: Plan, profile: Profile, goal_hours: float, seed: int = 0) -> Outcome:
    """Return the outcome of about the smallest number of nodes that takes at most some hours.

    Args:
        plan: everything else; its number of nodes is where the search begins.
        profile: measured times.
        goal_hours: hours.
        seed: of the simulations.

    Raises:
        InputError: no number of nodes is enough.
    """
    too_few, nodes = 0, plan.nodes
    best = simulate(plan, profile, seed)
    while best.hours > goal_hours:
        before, too_few, nodes = best, nodes, 2 * nodes
        if nodes * plan.sandboxes_per_node > MOST_SANDBOXES:
            raise _make_error(before, goal_hours)
        best = simulate(replace(plan, nodes=nodes), profile, seed)
        if best.hours > goal_hours and best.hours > before.hours * (1 - PRECISION):
            raise _make_error(best, goal_hours)
    while nodes - too_few > max(1, nodes * PRECISION):
        middle = (too_few + nodes) // 2
        outcome = simulate(replace(plan, nodes=middle), profile, seed)
        if outcome.hours <= goal_hours:
            nodes, best = middle, outcome
        else:
            too_few = middle
    return best


def _make_error(outcome: Outcome, goal_hours: float) -> InputError:
    return InputError(
        f"more nodes do not take {goal_hours:g} hours: {outcome.plan.nodes} take {outcome.hours:.1f}",
        advice=f"the bottleneck is {outcome.bottleneck}: give it more",
    )
