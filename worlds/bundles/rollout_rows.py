"""Rows of scenarios for programs that play them: verl, RAGEN, NeMo-Gym.

A row names world, scenario and seed, which `POST /reset` of `mergemill worlds serve` takes; the reward is that of
`POST /evaluate`. Neither solution nor checks are in it.
"""

from __future__ import annotations

import json

import pyarrow as pa

from training_data.episodes import NEMO_GYM, RAGEN, TrainingEpisode
from training_data.sources import RowSource
from worlds.bundles.contents import ENVIRONMENT, BundledScenario, BundledWorld, Row
from worlds.bundles.playing import build_prompt

DATA_SOURCE = "mergemill-worlds"
ABILITY = "tool-use"
MAX_STEPS = 40
"""Actions of an episode (EnvScaler, arXiv 2601.05808, section 4.1)."""
NEMO_GYM_AGENT = "mergemill_worlds_agent"
RAGEN_ENVIRONMENT = "mergemill_worlds"
EPISODES = RowSource(
    name=DATA_SOURCE,
    ability=ABILITY,
    players={NEMO_GYM: NEMO_GYM_AGENT, RAGEN: RAGEN_ENVIRONMENT},
    columns={
        "split": pa.string(),
        "environment": pa.string(),
        "world": pa.string(),
        "scenario": pa.string(),
        "seed": pa.int64(),
        "license": pa.string(),
        "certified": pa.bool_(),
        "tools": pa.string(),
        "max_steps": pa.int64(),
    },
)


def build_facts(world: BundledWorld, scenario: BundledScenario) -> Row:
    """Return the key that names an episode, and where it comes from."""
    return {
        "environment": ENVIRONMENT,
        "world": world.name,
        "scenario": scenario.definition.name,
        "seed": 0,
        "license": world.contents.license,
        "certified": world.contents.certification is not None,
    }


def make_episode(world: BundledWorld, scenario: BundledScenario) -> TrainingEpisode:
    """Return the episode of a scenario."""
    facts = build_facts(world, scenario)
    return TrainingEpisode(
        source=EPISODES,
        prompt=build_prompt(world.definition, scenario.definition),
        ground_truth=json.dumps({key: facts[key] for key in ("world", "scenario", "seed")}),
        facts=facts,
        tools=world.function_tools,
        max_steps=MAX_STEPS,
    )
