"""Rows of supervised training: conversations as messages, ShareGPT and alpaca.

A source hands over its conversations as objects with the fields of `TrainingConversation`; the content that these hold
is its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from training_data.sharegpt import Turn, is_alternating, make_dataset_info
from training_data.sources import LeftOutError, Message, Row, RowSource

NOT_ALTERNATING = "turns of user and model do not alternate"
"""Rows that LLaMA-Factory would drop without a message."""
ALPACA_COLUMNS = {
    "prompt": "instruction",
    "query": "input",
    "response": "output",
    "history": "history",
    "system": "system",
}
ALPACA_TRAINING = """\
# LLaMA-Factory: `llamafactory-cli train llamafactory.yaml model_name_or_path=MODEL output_dir=DIR`
# EnvScaler's settings (arXiv 2601.05808). With mask_history the last turn of a row alone is trained, so that each turn
# of a trajectory is trained once.
stage: sft
do_train: true
finetuning_type: full
dataset_dir: .
dataset: {name}
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


class TrainingConversation(Protocol):
    """A conversation that is trained, in the forms that formats need; each is computed when it is read."""

    @property
    def identity(self) -> Row:
        """Columns that every row begins with."""

    @property
    def origin(self) -> Row:
        """Columns that every row ends with."""

    @property
    def messages(self) -> Sequence[Message]:
        """OpenAI's messages. Where those of the assistant have `weight`, it is 0 for those that are not trained."""

    @property
    def tools(self) -> Sequence[Message] | None:
        """Tools in OpenAI's form; None leaves the column empty."""

    @property
    def system(self) -> str:
        """The system prompt, apart from the turns."""

    @property
    def turns(self) -> Sequence[Turn]:
        """Turns without the system's, calls as turns of their own.

        Raises:
            LeftOutError: ShareGPT cannot hold the conversation.
        """

    @property
    def functions(self) -> Sequence[Message] | None:
        """Tools beside `turns`; None leaves the column empty."""

    @property
    def hermes_system(self) -> str:
        """The system prompt with tools in it."""

    @property
    def hermes_turns(self) -> Sequence[Turn]:
        """Turns without the system's, calls and results in the text.

        Raises:
            LeftOutError: ShareGPT cannot hold the conversation.
        """


def build_messages_rows(conversation: TrainingConversation, number: int) -> list[Row]:
    """Return a row in OpenAI's message form."""
    del number
    return [
        {
            **conversation.identity,
            "messages": [dict(message) for message in conversation.messages],
            "tools": _render_tools(conversation.tools),
            **conversation.origin,
        }
    ]


def build_table_rows(conversation: TrainingConversation, number: int) -> list[Row]:
    """Return a row of messages and provenance as JSON, so that columns have a single type."""
    return [
        {
            name: json.dumps(row[name], ensure_ascii=False) if name in ("messages", "metadata") else row[name]
            for name in row
        }
        for row in build_messages_rows(conversation, number)
    ]


def make_table_schema(source: RowSource) -> pa.Schema:
    """Return the schema of `build_table_rows`; `columns` of the source are those of the identity."""
    texts = [(name, pa.string()) for name in ("messages", "tools", "metadata")]
    return pa.schema([*source.columns.items(), *texts])


def build_sharegpt_rows(conversation: TrainingConversation, number: int) -> list[Row]:
    """Return a ShareGPT row with calls as turns of their own, and tools in a column.

    Raises:
        LeftOutError: its turns do not alternate.
    """
    del number
    return [
        {
            **conversation.identity,
            "conversations": _render_turns(conversation.turns),
            "system": conversation.system,
            "tools": _render_tools(conversation.functions),
            **conversation.origin,
        }
    ]


def build_hermes_rows(conversation: TrainingConversation, number: int) -> list[Row]:
    """Return a ShareGPT row with calls in the model's text, and tools in the system prompt.

    Raises:
        LeftOutError: its turns do not alternate.
    """
    del number
    return [
        {
            **conversation.identity,
            "conversations": _render_turns(conversation.hermes_turns),
            "system": conversation.hermes_system,
            **conversation.origin,
        }
    ]


def build_alpaca_rows(conversation: TrainingConversation, number: int) -> list[Row]:
    """Return a row for each turn of the agent, with the earlier turns as history, without their thoughts.

    Calls, results and tools are text as the chat template of Qwen 3 writes them (EnvScaler, sft/).

    Raises:
        LeftOutError: its turns do not alternate.
    """
    del number
    texts = [turn["value"] for turn in _render_turns(conversation.hermes_turns)]
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    identity, system = conversation.identity, conversation.hermes_system
    return [
        {
            **identity,
            "id": f"{identity['id']}/{turn}",
            "turn": turn,
            "turns": len(pairs),
            "instruction": instruction,
            "input": "",
            "output": answer,
            "system": system,
            "history": [[earlier, _THOUGHT.sub("", text)] for earlier, text in pairs[:turn]],
            **conversation.origin,
        }
        for turn, (instruction, answer) in enumerate(pairs)
    ]


def make_sharegpt_files(source: RowSource) -> dict[str, str]:
    """Return LLaMA-Factory's description of `build_sharegpt_rows`."""
    return _make_info_file(make_dataset_info(source.name, has_tools=True))


def make_hermes_files(source: RowSource) -> dict[str, str]:
    """Return LLaMA-Factory's description of `build_hermes_rows`."""
    return _make_info_file(make_dataset_info(source.name, has_tools=False, tags=source.hermes_tags))


def make_alpaca_files(source: RowSource) -> dict[str, str]:
    """Return LLaMA-Factory's description of `build_alpaca_rows`, and settings with which it trains each turn once."""
    info = {"file_name": "train.jsonl", "formatting": "alpaca", "columns": ALPACA_COLUMNS}
    training = {"llamafactory.yaml": ALPACA_TRAINING.format(name=source.name)}
    return _make_info_file({source.name: info}) | training


def _make_info_file(info: Row) -> dict[str, str]:
    return {"dataset_info.json": json.dumps(info, indent=1) + "\n"}


def _render_tools(tools: Sequence[Message] | None) -> str:
    return "" if tools is None else json.dumps(list(tools), ensure_ascii=False)


def _render_turns(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return turns as rows have them, which begin with the user's, alternate, and end with the model's."""
    rendered = [{"from": speaker, "value": text} for speaker, text in turns]
    # LLaMA-Factory drops such rows without a message, so they are left out here with a reason.
    if not is_alternating(rendered):
        raise LeftOutError(NOT_ALTERNATING)
    return rendered
