"""Rows of scenarios for programs that play them: verl, RAGEN, NeMo-Gym.

A row names world, scenario and seed, which `POST /reset` of `mergemill worlds serve` takes; the reward is that of
`POST /evaluate`. Neither solution nor checks are in it.
"""

from __future__ import annotations

import json

import pyarrow as pa

from worlds.bundles.material import ENVIRONMENT, BundledScenario, BundledWorld, Row
from worlds.bundles.playing import build_prompt

DATA_SOURCE = "mergemill-worlds"
ABILITY = "tool-use"
MAX_STEPS = 40
"""Actions of an episode (EnvScaler, arXiv 2601.05808, section 4.1)."""
NEMO_GYM_AGENT = "mergemill_worlds_agent"
RAGEN_ENVIRONMENT = "mergemill_worlds"
VERL_SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct(
                [
                    ("index", pa.int64()),
                    ("split", pa.string()),
                    ("environment", pa.string()),
                    ("world", pa.string()),
                    ("scenario", pa.string()),
                    ("seed", pa.int64()),
                    ("license", pa.string()),
                    ("certified", pa.bool_()),
                    ("tools", pa.string()),
                    ("max_steps", pa.int64()),
                ]
            ),
        ),
    ]
)


def build_facts(world: BundledWorld, scenario: BundledScenario) -> Row:
    """Return what names an episode, and where it comes from."""
    return {
        "environment": ENVIRONMENT,
        "world": world.name,
        "scenario": scenario.definition.name,
        "seed": 0,
        "license": world.material.license,
        "certified": world.material.certification is not None,
    }


def build_verl_row(world: BundledWorld, scenario: BundledScenario, index: int) -> Row:
    """Return a row of verl's RLHFDataset; `extra_info.tools` are the tools in OpenAI's form, as JSON."""
    facts = build_facts(world, scenario)
    names = {key: facts[key] for key in ("world", "scenario", "seed")}
    return {
        "data_source": DATA_SOURCE,
        "prompt": [dict(message) for message in build_prompt(world.definition, scenario.definition)],
        "ability": ABILITY,
        "reward_model": {"style": "rule", "ground_truth": json.dumps(names)},
        "extra_info": {
            "index": index,
            "split": "train",
            **facts,
            "tools": json.dumps(world.function_tools, ensure_ascii=False),
            "max_steps": MAX_STEPS,
        },
    }


def build_ragen_row(world: BundledWorld, scenario: BundledScenario, index: int) -> Row:
    """Return a row for an environment of RAGEN, which takes row number SEED at `reset(seed)`."""
    system, task = build_prompt(world.definition, scenario.definition)
    return {
        "index": index,
        "env_type": RAGEN_ENVIRONMENT,
        **build_facts(world, scenario),
        "env_instruction": system["content"],
        "task": task["content"],
        "tools": json.dumps(world.function_tools, ensure_ascii=False),
        "max_actions_per_traj": MAX_STEPS,
    }


def build_nemo_gym_row(world: BundledWorld, scenario: BundledScenario, index: int) -> Row:
    """Return a row as NeMo-Gym's agents read it; its server receives `verifier_metadata`."""
    del index
    tools = [{"type": "function", "strict": False, **tool.to_json()} for tool in world.analysis.tools]
    return {
        "responses_create_params": {
            "input": [dict(message) for message in build_prompt(world.definition, scenario.definition)],
            "tools": tools,
            "parallel_tool_calls": False,
        },
        "agent_ref": {"type": "responses_api_agents", "name": NEMO_GYM_AGENT},
        "verifier_metadata": build_facts(world, scenario),
    }
