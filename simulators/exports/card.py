"""Card of a simulated data set: front matter for the hub, origin, counts of every rule, and what it is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import yaml

from core.text import format_count
from simulators.trajectory import ENVIRONMENT, SimulatedTrajectory
from training_data import hub

TITLE = "Simulated conversations of agents with tools"
TEXT = """\
# {title}

environment: {environment}

{rows} of {trajectories}, written whole by a language model: **no tool was called, and no user was there**.
Results of tools in it are what the model took for likely. There is no certificate, and no reward.

| | |
|---|---|
| domain | `{domain}` (pack {pack_version}) |
| simulator | {simulators} |
| profile | `{profile}` |
| prompt | `{prompt}` |
| seeds | {n_seeds} used of {n_read}, {n_sampled} with a conversation here |
| licences of the seeds | {licenses} |{selection}

The licence of a row is that of its seed, on which it is modelled. `metadata` names seed, sample, scenario, injected
failure, prompt, simulator and the key of the answer in the ledger, and holds what was written before a repair.

## What each rule did

| rule | in | repaired | dropped | out |
|---|---|---|---|---|
{steps}

{dropped}

## Seeds that were not used

{seeds}
{left_out}"""


@dataclass(kw_only=True)
class DatasetFacts:
    """What a card holds of a run, besides the rows."""

    domain: str
    pack_version: str
    profile: str
    prompt: str
    simulator: str
    selection: str = ""
    """What the conversations were selected by, of those that the rules kept; empty where all are there."""
    n_seeds_read: int = 0
    rejected_seeds: Counter[str] = field(default_factory=Counter)
    steps: list[dict[str, Any]] = field(default_factory=list)
    """For each step name, before, repaired, dropped (reason -> number) and after."""
    trajectories: int = 0
    answers: int = 0
    licenses: Counter[str] = field(default_factory=Counter)
    sampled_seeds: set[str] = field(default_factory=set)

    def add(self, one: SimulatedTrajectory) -> None:
        """Count a trajectory."""
        self.trajectories += 1
        self.answers += one.n_answers
        self.licenses[one.license] += 1
        self.sampled_seeds.add(one.parent)


def render_card(facts: DatasetFacts, *, rows: int, data_files: str, left_out: Counter[str]) -> str:
    """Return the card of a folder of rows."""
    front: dict[str, Any] = {
        "pretty_name": TITLE,
        "license": hub.name_licenses(sorted(facts.licenses) or [""]),
        "task_categories": ["text-generation"],
        "tags": ["agent", "tool-use", "synthetic", ENVIRONMENT, "mergemill"],
        "environment": ENVIRONMENT,
        "size_categories": [hub.name_size(rows)],
    }
    if data_files:
        front["configs"] = [{"config_name": "default", "data_files": [{"split": "train", "path": data_files}]}]
    body = TEXT.format(
        title=TITLE,
        environment=ENVIRONMENT,
        rows=format_count(rows, "row"),
        trajectories=format_count(facts.trajectories, "trajectory"),
        domain=facts.domain,
        pack_version=facts.pack_version,
        simulators=f"`{facts.simulator}`",
        profile=facts.profile,
        prompt=facts.prompt,
        n_seeds=facts.n_seeds_read - facts.rejected_seeds.total(),
        n_read=facts.n_seeds_read,
        n_sampled=len(facts.sampled_seeds),
        licenses=", ".join(f"{name} ({count})" for name, count in sorted(facts.licenses.items())) or "-",
        selection=f"\n| selected by | {facts.selection} |" if facts.selection else "",
        steps="\n".join(_render_step(step) for step in facts.steps),
        dropped=_render_reasons(facts),
        seeds="\n".join(f"- {format_count(n, 'seed')}: `{name}`" for name, n in sorted(facts.rejected_seeds.items()))
        or "None.",
        left_out="".join(
            f"\n{format_count(n, 'trajectory')} left out of this format: {reason}\n" for reason, n in left_out.items()
        ),
    )
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n{body}"


def _render_step(step: dict[str, Any]) -> str:
    dropped = sum(step["dropped"].values())
    return f"| {step['step']} | {step['before']} | {step['repaired']} | {dropped} | {step['after']} |"


def _render_reasons(facts: DatasetFacts) -> str:
    total: Counter[str] = Counter()
    for step in facts.steps:
        total.update(step["dropped"])
    lines = [f"- {format_count(number, 'conversation')}: `{reason}`" for reason, number in sorted(total.items())]
    return "\n".join(lines) or "No conversation was dropped."
