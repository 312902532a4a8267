"""Rows from which trainers begin simulated episodes. Each names its task; none has a reward, which only an episode has.

`simia`: `{system, conversations}` with the roles human and gpt, which Simia's own trainer reads as reference. `verl`:
prompts that name the agent loop `mergemill_simulated`.
"""

from __future__ import annotations

import json

import pyarrow as pa

from simulators.conversation import DialogueTurn, TurnRole
from simulators.domains.pack import DomainPack
from simulators.exports.formats import HERMES_SPEAKERS
from simulators.options import SIMIA
from simulators.post_processing.calls import render_hermes
from simulators.post_processing.system_prompt import render_system
from simulators.seeds.seed import Seed
from simulators.trajectory import ENVIRONMENT
from training_data.episodes import VERL, TrainingEpisode
from training_data.sources import Row, RowSource

DATA_SOURCE = "mergemill-simulated"
AGENT_LOOP = "mergemill_simulated"
"""Name of the loop of `mergemill_client.simulated.verl`."""
EPISODES = RowSource(
    name=DATA_SOURCE,
    ability="tools",
    players={VERL: AGENT_LOOP},
    columns={name: pa.string() for name in ("task", "name", "environment", "domain", "license", "simulator")},
)


def build_system(seed: Seed, pack: DomainPack, profile: str, target: str) -> str:
    """Return the agent's system prompt: in profile `simia` the seed's own where any, else that of the pack."""
    own = seed.conversation.system if profile == SIMIA else ""
    return own or render_system(pack, target)


def find_first_message(seed: Seed) -> str:
    """Return the person's first message; empty where nobody writes it."""
    return next((turn.text for turn in seed.conversation.body if turn.role is TurnRole.HUMAN), "")


def build_simia_row(seed: Seed, pack: DomainPack, *, profile: str, target: str, simulator: str) -> Row:
    """Return `{system, conversations}` with where it comes from."""
    turns = [
        {"from": HERMES_SPEAKERS[turn.role], "value": _render_turn(turn)}
        for turn in seed.conversation.body
        if turn.role in HERMES_SPEAKERS
    ]
    return {
        "id": seed.id,
        "environment": ENVIRONMENT,
        "domain": pack.name,
        "license": seed.license,
        "simulator": simulator,
        "system": build_system(seed, pack, profile, target),
        "conversations": turns,
    }


def make_episode(seed: Seed, pack: DomainPack, *, simulator: str) -> TrainingEpisode:
    """Return the episode of a seed. verl's loop begins it itself; the prompt is for filters by length."""
    return TrainingEpisode(
        source=EPISODES,
        prompt=[
            {"role": "system", "content": pack.policy},
            {"role": "user", "content": find_first_message(seed)},
        ],
        ground_truth="",
        facts={
            "task": seed.id,
            "name": seed.name,
            "environment": ENVIRONMENT,
            "domain": pack.name,
            "license": seed.license,
            "simulator": simulator,
        },
    )


def render_rows(rows: list[Row]) -> str:
    """Return rows as a JSON list, as Simia's trainer reads them."""
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


def _render_turn(turn: DialogueTurn) -> str:
    return render_hermes(turn, released=False) if turn.calls else turn.text
