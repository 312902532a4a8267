"""Outcomes as text, and the tables of docs/evidence/scale.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.scale.plan import POSTGRESQL, REPOSITORY, Plan
from benchmarks.scale.profile import Profile
from benchmarks.scale.search import find_nodes
from benchmarks.scale.simulate import Outcome, simulate

NODE_CORES = 64
SANDBOXES = (1, 16, 64, 256, 1024, 4096, 16_384, 100_032)
"""Of the first table: the last are those of 1,563 nodes."""
LEAST_WIDE = 1024
"""Sandboxes from which the second table begins."""
GOALS = ((24, "a day"), (168, "a week"))
WIDE: Mapping[str, Any] = {
    "drivers": 16,
    "miners": 64,
    "tokens": 20,
    "clone_gbit": 10.0,
    "database": POSTGRESQL,
    "database_cores": 32,
    "registry_gbit": 100.0,
    "judge_per_minute": 60_000.0,
}
"""Services that are wide enough for 100,000 sandboxes."""
REMEDIES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("one driver that mines, one token, SQLite", {}),
    ("the same, with 64 miners, 20 tokens and 10 Gbit/s for clones", {"miners": 64, "tokens": 20, "clone_gbit": 10.0}),
    (
        "also 16 drivers on PostgreSQL",
        {name: WIDE[name] for name in ("miners", "tokens", "clone_gbit", "drivers", "database", "database_cores")},
    ),
    ("also 60,000 requests a minute to the judge's model, and 100 Gbit/s for the registry", WIDE),
    ("also changes of a repository on one node", {**WIDE, "placement": REPOSITORY}),
)
SAMPLING: Mapping[str, Any] = {"rollouts": 4, "model_concurrency": 8192}


def render_outcome(outcome: Outcome) -> str:
    """Return an outcome as lines for people."""
    totals, plan = outcome.totals, outcome.plan
    ends = ", ".join(f"{name} {number:,}" for name, number in totals.changes.most_common())
    begun = f"{outcome.tail_hours:.2f} after the last job was begun; {outcome.node_hours:,.0f} node hours"
    made = (
        f"{sum(totals.changes.values()):,} candidates, {totals.tasks:,} certified tasks, {totals.rollouts:,} rollouts"
    )
    layers = f"{totals.layers_made:,} made, {totals.layers_found:,} found"
    lines = [
        f"{plan.nodes:,} nodes with {plan.sandboxes:,} sandboxes: {outcome.hours:.2f} hours, of them {begun}",
        f"{totals.repositories:,} repositories, {totals.mined:,} changes, {made}",
        f"ends: {ends}",
        f"dependency layers: {layers}; {totals.lost_jobs:,} jobs begun again after a node failed",
        f"dollars: {_render_parts(outcome.dollars, ',.0f')}",
        f"terabytes: {_render_parts(outcome.terabytes, '.3f')}; sent {totals.transferred_bytes / 1e12:.2f}",
        "busy: " + ", ".join(f"{name} {share:.0%}" for name, share in outcome.usage.items()),
        f"bottleneck: {outcome.bottleneck}",
        f"simulated in {outcome.wall_seconds:.1f} s, {outcome.n_events:,} events",
    ]
    return "\n".join(lines) + "\n"


def _render_parts(parts: Mapping[str, float], form: str) -> str:
    return f"{sum(parts.values()):{form}} (" + ", ".join(f"{name} {part:{form}}" for name, part in parts.items()) + ")"


def render_answers(
    profile: Profile, repositories: int, seed: int, show: Callable[[str], object] = lambda _: None
) -> str:
    """Simulate the plans of docs/evidence/scale.md and return its tables in Markdown.

    Args:
        profile: measured times and sizes.
        repositories: of each plan.
        seed: of the simulations.
        show: is called with each row when it is there.
    """
    base, outcomes = Plan(repositories=repositories), dict[Plan, Outcome]()

    def make_row(label: str, plan: Plan) -> str:
        if plan not in outcomes:
            outcomes[plan] = simulate(plan, profile, seed)
        row = _render_row(label, outcomes[plan])
        show(row)
        return row

    growth = [make_row(f"{n:,}", make_cluster(base, n)) for n in SANDBOXES]
    wide = [make_row(f"{n:,}", replace(make_cluster(base, n), **WIDE)) for n in SANDBOXES if n >= LEAST_WIDE]
    largest = make_cluster(base, SANDBOXES[-1])
    remedies = [make_row(label, replace(largest, **changes)) for label, changes in REMEDIES]
    goals = []
    for with_sampling in (False, True):
        for hours, name in GOALS:
            plan = replace(base, nodes=4, **WIDE, **(SAMPLING if with_sampling else {}))
            label = f"{name}, {'with 4 rollouts a task' if with_sampling else 'without rollouts'}"
            goals.append(_render_row(label, find_nodes(plan, profile, hours, seed)))
            show(goals[-1])
    count = f"{repositories:,} repositories"
    parts = [
        (f"{count} with one driver that mines, one token and SQLite:", "sandboxes at once", growth),
        (
            "With 16 drivers, 64 miners, 20 tokens, PostgreSQL, and a wider network and judge:",
            "sandboxes at once",
            wide,
        ),
        (f"What {SANDBOXES[-1]:,} sandboxes need around them:", "services", remedies),
    ]
    parts.append(("Nodes for a goal, with the wide services:", "goal", goals))
    return "\n".join("\n".join([f"{title}\n", _render_head(first), *rows, ""]) for title, first, rows in parts)


def make_cluster(plan: Plan, sandboxes: int) -> Plan:
    """Return a plan with so many sandboxes, a core each, on nodes of at most 64."""
    per_node = min(NODE_CORES, sandboxes)
    return replace(plan, nodes=sandboxes // per_node, sandboxes_per_node=per_node, cores=per_node)


def _render_head(first: str) -> str:
    names = [first, "nodes", "hours", "of them at the end", "core hours", "dollars of nodes"]
    names += ["all dollars", "TB", "certified tasks"]
    return f"| {' | '.join([*names, 'cores busy', 'bottleneck'])} |\n|---|{'---:|' * len(names)}---|"


def _render_row(label: str, outcome: Outcome) -> str:
    cells = [label, f"{outcome.plan.nodes:,}", f"{outcome.hours:,.1f}", f"{outcome.tail_hours:.1f}"]
    cells += [f"{outcome.node_hours * outcome.plan.cores:,.0f}", f"{outcome.dollars['nodes']:,.0f}"]
    cells += [f"{sum(outcome.dollars.values()):,.0f}"]
    cells += [f"{sum(outcome.terabytes.values()):.2f}", f"{outcome.totals.tasks:,}", f"{outcome.usage['cores']:.0%}"]
    return f"| {' | '.join([*cells, outcome.bottleneck])} |"
