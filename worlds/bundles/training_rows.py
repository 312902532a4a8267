"""Rows of supervised training: conversations that solve scenarios, as messages, ShareGPT and alpaca."""

from __future__ import annotations

import json
import re

from training_data.sharegpt import QWEN_TOOLS, is_alternating, make_turns
from worlds.bundles.material import ENVIRONMENT, BundledScenario, BundledWorld, Row, WorldConversation

NOT_ALTERNATING = "turns of user and model do not alternate"
"""Rows that LLaMA-Factory would drop without a message."""
DATASET_NAME = "worlds"
ALPACA_INFO = {
    DATASET_NAME: {
        "file_name": "train.jsonl",
        "formatting": "alpaca",
        "columns": {
            "prompt": "instruction",
            "query": "input",
            "response": "output",
            "history": "history",
            "system": "system",
        },
    }
}
ALPACA_TRAINING = """\
# LLaMA-Factory: `llamafactory-cli train llamafactory.yaml model_name_or_path=MODEL output_dir=DIR`
# EnvScaler's settings (arXiv 2601.05808). With mask_history the last turn of a row alone is trained, so that each turn
# of a trajectory is trained once.
stage: sft
do_train: true
finetuning_type: full
dataset_dir: .
dataset: worlds
template: qwen3
mask_history: true
cutoff_len: 32768
per_device_train_batch_size: 1
gradient_accumulation_steps: 32
learning_rate: 1.0e-6
num_train_epochs: 3
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
"""
_THOUGHT = re.compile(r"\A<think>.*?</think>\s*", re.DOTALL)


class UnwritableScenarioError(Exception):
    """A format cannot hold a scenario; the text is the reason."""


def build_identity(world: BundledWorld, scenario: BundledScenario, found: WorldConversation) -> Row:
    """Return the columns that every row begins with."""
    return {
        "id": f"{scenario.definition.name}/{found.label}",
        "environment": ENVIRONMENT,
        "world": world.name,
        "scenario": scenario.definition.name,
        "license": world.material.license,
        "origin": world.material.origin,
        "certified": world.material.certification is not None,
        "source": found.source,
        "model": found.model,
        "reward": found.reward,
        "n_calls": len(found.calls),
    }


def build_messages_row(world: BundledWorld, scenario: BundledScenario, found: WorldConversation) -> Row:
    """Return a row in OpenAI's message form. Messages of the assistant have `weight` 1, and are what is trained."""
    messages = [
        {**message, "weight": 1} if message["role"] == "assistant" else dict(message) for message in found.messages
    ]
    return {
        **build_identity(world, scenario, found),
        "messages": messages,
        "tools": json.dumps(world.function_tools, ensure_ascii=False),
    }


def build_sharegpt_row(world: BundledWorld, scenario: BundledScenario, found: WorldConversation) -> Row:
    """Return a ShareGPT row with calls as turns of their own, and tools in a column.

    Raises:
        UnwritableScenarioError: its turns do not alternate.
    """
    turns = [{"from": speaker, "value": text} for speaker, text in make_turns(found.turns, hermes=False)]
    if not is_alternating(turns):
        raise UnwritableScenarioError(NOT_ALTERNATING)
    return {
        **build_identity(world, scenario, found),
        "conversations": turns,
        "system": found.system,
        "tools": json.dumps([tool.to_json() for tool in world.analysis.tools], ensure_ascii=False),
    }


def build_alpaca_rows(world: BundledWorld, scenario: BundledScenario, found: WorldConversation) -> list[Row]:
    """Return a row for each turn of the agent, with the earlier ones as history, without their thoughts.

    Calls, results and tools are text as the chat template of Qwen 3 writes them (EnvScaler, sft/).

    Raises:
        UnwritableScenarioError: its turns do not alternate.
    """
    texts = [text for _, text in make_turns(found.turns, hermes=True)]
    sides = [speaker == "gpt" for speaker, _ in make_turns(found.turns, hermes=True)]
    if not sides or sides != [False, True] * (len(sides) // 2):
        raise UnwritableScenarioError(NOT_ALTERNATING)
    tools = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in world.function_tools)
    system = f"{found.messages[0]['content'].rstrip()}{QWEN_TOOLS.format(tools=tools)}"
    identity = build_identity(world, scenario, found)
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    return [
        {
            **identity,
            "id": f"{identity['id']}/{number}",
            "turn": number,
            "turns": len(pairs),
            "instruction": said,
            "input": "",
            "output": answer,
            "system": system,
            "history": [[earlier, _THOUGHT.sub("", text)] for earlier, text in pairs[:number]],
        }
        for number, (said, answer) in enumerate(pairs)
    ]
