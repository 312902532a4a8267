"""Card of a simulated data set: front matter for the hub, origin, counts of every rule, and the limits it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.text import format_count
from simulators.trajectory import ENVIRONMENT, SimulatedTrajectory
from training_data.card import Card, Section, render_table

TITLE = "Simulated conversations of agents with tools"
DESCRIPTION = """\
environment: {environment}

{rows} of {trajectories}, written whole by a language model: **no tool was called, and no user was there**.
Results of tools in it are what the model took for likely. There is no certificate, and no reward."""
COLUMNS = """\
The licence of a row is that of its seed, on which it is modelled. `metadata` names seed, sample, scenario, injected
failure, prompt, simulator and the key of the answer in the ledger, and holds what was written before a repair."""
STEP_COLUMNS = ("rule", "in", "repaired", "dropped", "out")


@dataclass(kw_only=True)
class DatasetFacts:
    """Facts that a card holds of a run, besides the rows."""

    domain: str
    pack_version: str
    profile: str
    prompt: str
    simulator: str
    selection: str = ""
    """Rules that the conversations were selected by, of those that the rules kept; empty where all are there."""
    n_seeds_read: int = 0
    rejected_seeds: Counter[str] = field(default_factory=Counter)
    steps: list[dict[str, Any]] = field(default_factory=list)
    """For each step name, before, repaired, dropped (reason -> number) and after."""
    trajectories: int = 0
    answers: int = 0
    licenses: Counter[str] = field(default_factory=Counter)
    sampled_seeds: set[str] = field(default_factory=set)
    warnings: Mapping[str, int] = field(default_factory=dict)
    """Warning -> seeds that it is about."""

    def add(self, trajectory: SimulatedTrajectory) -> None:
        """Count a trajectory."""
        self.trajectories += 1
        self.answers += trajectory.n_answers
        self.licenses[trajectory.license] += 1
        self.sampled_seeds.add(trajectory.parent)


def build_card(facts: DatasetFacts, *, rows: int, data_files: str, left_out: Counter[str]) -> Card:
    """Return the card of a folder of rows; `data_files`: those of its rows, empty where it has none of its own."""
    description = DESCRIPTION.format(
        environment=ENVIRONMENT,
        rows=format_count(rows, "row"),
        trajectories=format_count(facts.trajectories, "trajectory"),
    )
    seeds = "\n".join(f"- {format_count(n, 'seed')}: `{name}`" for name, n in sorted(facts.rejected_seeds.items()))
    excluded = [f"{format_count(n, 'trajectory')} left out of this format: {reason}" for reason, n in left_out.items()]
    warnings = [f"**{format_count(number, 'seed')}: {warning}.**" for warning, number in facts.warnings.items()]
    return Card(
        title=TITLE,
        tags=("agent", "tool-use", "synthetic", ENVIRONMENT, "mergemill"),
        licenses=sorted(facts.licenses),
        rows=rows,
        languages=(),
        environment=ENVIRONMENT,
        data_files={"train": data_files} if data_files else None,
        sections=(
            Section("", [description, *warnings, _render_origin(facts), COLUMNS]),
            Section("What each rule did", [_render_steps(facts), _render_reasons(facts)]),
            Section("Seeds that were not used", [seeds or "None.", *excluded]),
        ),
    )


def _render_origin(facts: DatasetFacts) -> str:
    n_used = facts.n_seeds_read - facts.rejected_seeds.total()
    licenses = ", ".join(f"{name} ({count})" for name, count in sorted(facts.licenses.items()))
    rows = [
        ("domain", f"`{facts.domain}` (pack {facts.pack_version})"),
        ("simulator", f"`{facts.simulator}`"),
        ("profile", f"`{facts.profile}`"),
        ("prompt", f"`{facts.prompt}`"),
        ("seeds", f"{n_used} used of {facts.n_seeds_read}, {len(facts.sampled_seeds)} with a conversation here"),
        ("licences of the seeds", licenses or "-"),
        *([("selected by", facts.selection)] if facts.selection else []),
    ]
    return render_table(("", ""), rows)


def _render_steps(facts: DatasetFacts) -> str:
    rows = [
        (step["step"], step["before"], step["repaired"], sum(step["dropped"].values()), step["after"])
        for step in facts.steps
    ]
    return render_table(STEP_COLUMNS, rows)


def _render_reasons(facts: DatasetFacts) -> str:
    total: Counter[str] = Counter()
    for step in facts.steps:
        total.update(step["dropped"])
    lines = [f"- {format_count(number, 'conversation')}: `{reason}`" for reason, number in sorted(total.items())]
    return "\n".join(lines) or "No conversation was dropped."
