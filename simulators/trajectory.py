"""A simulated trajectory: a conversation that passed all steps, with everything that it comes from.

A line of `trajectories.jsonl`, of which all rows are made. Its `id` is the hash of its content and `parent` names the
seed, as of every record of the task database; `environment` is `simulated` in each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from simulators.conversation import DialogueTurn
from simulators.domains.pack import DomainPack
from simulators.options import SimulationOptions
from simulators.post_processing.draft import Draft

ENVIRONMENT = "simulated"
"""Value of `environment` of every record, row and card."""


@dataclass(frozen=True, kw_only=True)
class SimulatedTrajectory:
    """A conversation that a model wrote whole. `parent`: id of the seed; `answer`: key of the answer in the ledger."""

    id: str
    parent: str
    domain: str
    pack_version: str
    simulator: str
    """Name of the model that wrote it."""
    profile: str
    prompt: str
    """Version of the prompt."""
    seed: Mapping[str, Any]
    """Provenance of the seed: name, file, line, format, licence, turns, tools that it calls, subjects if it has any."""
    sample: int
    scenario: str
    failure: str
    """Name of the injected tool failure, empty for none."""
    answer: str
    license: str
    """Of the seed, since the conversation is modelled on it."""
    turns: tuple[DialogueTurn, ...]
    n_generated: int
    """Turns that the simulator wrote, before any was removed."""
    repairs: tuple[Mapping[str, Any], ...] = ()
    environment: str = ENVIRONMENT

    @property
    def tool_names(self) -> list[str]:
        """Names of the tools that are called, in the order of their first calls."""
        return list(dict.fromkeys(call.name for turn in self.turns for call in turn.calls))

    @property
    def n_answers(self) -> int:
        """Turns of the agent, which are trained."""
        return sum(turn.is_agent for turn in self.turns)

    @property
    def origin(self) -> tuple[str, ...]:
        """Words by which the source of the seed names it and its subject, as of `Seed`."""
        return tuple(word for word in (*self.seed.get("subjects", ()), self.seed["name"]) if word)

    def to_json(self) -> dict[str, Any]:
        """Return the line of `trajectories.jsonl`."""
        return {**_to_fields(self), "id": self.id}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SimulatedTrajectory:
        """Return the trajectory of a line."""
        turns = tuple(DialogueTurn.from_json(turn) for turn in value["turns"])
        return cls(**{**value, "turns": turns, "repairs": tuple(value["repairs"])})


def make_trajectory(
    draft: Draft, pack: DomainPack, options: SimulationOptions, *, model: str, prompt: str
) -> SimulatedTrajectory:
    """Return the trajectory of a draft that passed all steps."""
    job = draft.job
    made = SimulatedTrajectory(
        id="",
        parent=job.seed.id,
        domain=pack.name,
        pack_version=pack.version,
        simulator=model,
        profile=options.profile,
        prompt=prompt,
        seed=job.seed.describe(),
        sample=job.sample,
        scenario=job.scenario.name,
        failure=job.failure.name if job.failure else "",
        answer=draft.key,
        license=job.seed.license,
        turns=draft.turns,
        n_generated=draft.n_generated,
        repairs=tuple(asdict(repair) for repair in draft.repairs),
    )
    content = json.dumps(_to_fields(made), sort_keys=True).encode(errors="replace")
    return replace(made, id=hashlib.sha256(content).hexdigest())


def _to_fields(trajectory: SimulatedTrajectory) -> dict[str, Any]:
    """Return everything but the id, as JSON."""
    content = {field.name: getattr(trajectory, field.name) for field in fields(trajectory) if field.name != "id"}
    turns = [turn.to_json() for turn in trajectory.turns]
    return {
        **content,
        "seed": dict(trajectory.seed),
        "turns": turns,
        "repairs": [dict(repair) for repair in trajectory.repairs],
    }
