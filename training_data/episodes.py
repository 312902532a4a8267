"""Rows of reinforcement learning: prompts of episodes for verl, SkyRL, slime, NeMo-Gym and RAGEN.

A source hands over its episodes as values of `TrainingEpisode`. No row has a reward: an agent earns it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from training_data.sources import Message, Row, RowSource

VERL, SKYRL, NEMO_GYM, RAGEN = "verl", "skyrl", "nemo-gym", "ragen"
"""Formats whose rows name the program that plays or grades an episode: keys of `RowSource.players`."""
MESSAGES_TYPE = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
"""Type of a prompt in parquet: OpenAI messages."""


@dataclass(frozen=True, kw_only=True)
class TrainingEpisode:
    """An episode that can be played."""

    source: RowSource
    prompt: Sequence[Message]
    ground_truth: str
    """Data that a reward function is given beside the answer: a name, never a solution."""
    facts: Mapping[str, Any]
    """Data that the program that plays or grades it needs, and where it comes from."""
    tools: Sequence[Message] | None = None
    """Tools in OpenAI's form; None where the trainer's own program has them."""
    max_steps: int | None = None
    split: str = "train"


def build_verl_rows(episode: TrainingEpisode, number: int) -> list[Row]:
    """Return a row of verl's RLHFDataset; its reward managers hand `extra_info` to the reward function."""
    source = episode.source
    player = {"agent_name": source.players[VERL]} if VERL in source.players else {}
    return [
        {
            "data_source": source.name,
            "prompt": _copy_messages(episode),
            "ability": source.ability,
            "reward_model": {"style": "rule", "ground_truth": episode.ground_truth},
            "extra_info": {"index": number, **_select_columns(episode)},
            **player,
        }
    ]


def make_verl_schema(source: RowSource) -> pa.Schema:
    """Return the schema of `build_verl_rows`."""
    return pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", MESSAGES_TYPE),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct([("index", pa.int64()), *source.columns.items()])),
            *([("agent_name", pa.string())] if VERL in source.players else []),
        ]
    )


def build_skyrl_rows(episode: TrainingEpisode, number: int) -> list[Row]:
    """Return a row of SkyRL's PromptDataset; all columns but the prompt reach the environment as its extras."""
    del number
    return [
        {
            "data_source": episode.source.name,
            "prompt": _copy_messages(episode),
            "env_class": episode.source.players[SKYRL],
            "reward_spec": {"method": "rule", "ground_truth": episode.ground_truth},
            "extra_info": _select_columns(episode),
        }
    ]


def make_skyrl_schema(source: RowSource) -> pa.Schema:
    """Return the schema of `build_skyrl_rows`."""
    return pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", MESSAGES_TYPE),
            ("env_class", pa.string()),
            ("reward_spec", pa.struct([("method", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct(list(source.columns.items()))),
        ]
    )


def build_slime_rows(episode: TrainingEpisode, number: int) -> list[Row]:
    """Return a row for --input-key prompt --label-key label --metadata-key metadata --apply-chat-template."""
    del number
    metadata = dict(episode.facts)
    return [{"prompt": _copy_messages(episode), "label": episode.ground_truth, "metadata": metadata}]


def build_nemo_gym_rows(episode: TrainingEpisode, number: int) -> list[Row]:
    """Return a row as NeMo-Gym's agents read it; its server receives `verifier_metadata`."""
    del number
    params: Row = {"input": _copy_messages(episode)}
    if episode.tools is not None:
        params["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in episode.tools]
        params["parallel_tool_calls"] = False
    agent = {"type": "responses_api_agents", "name": episode.source.players[NEMO_GYM]}
    return [{"responses_create_params": params, "agent_ref": agent, "verifier_metadata": dict(episode.facts)}]


def build_ragen_rows(episode: TrainingEpisode, number: int) -> list[Row]:
    """Return a row for an environment of RAGEN, which takes row number SEED at `reset(seed)`."""
    system, task = episode.prompt
    return [
        {
            "index": number,
            "env_type": episode.source.players[RAGEN],
            **episode.facts,
            "env_instruction": system["content"],
            "task": task["content"],
            "tools": _render_tools(episode),
            "max_actions_per_traj": episode.max_steps,
        }
    ]


def _select_columns(episode: TrainingEpisode) -> Row:
    """Return the columns of the source: facts, and those for which an episode has fields."""
    own = {"split": episode.split, "tools": _render_tools(episode), "max_steps": episode.max_steps}
    known = {**own, **episode.facts}
    return {name: known[name] for name in episode.source.columns}


def _render_tools(episode: TrainingEpisode) -> str:
    return json.dumps(list(episode.tools or ()), ensure_ascii=False)


def _copy_messages(episode: TrainingEpisode) -> list[Row]:
    return [dict(message) for message in episode.prompt]
