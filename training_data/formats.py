"""Formats of rows for trainers. `FORMATS` is the complete list; a stage chooses those that its command offers.

A further format is a function that makes its rows, in `conversations` or `episodes`, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from training_data import conversations, episodes
from training_data.conversations import TrainingConversation
from training_data.episodes import TrainingEpisode
from training_data.parquet import GROUP_ROWS
from training_data.sources import Row, RowSource

Item = TypeVar("Item")
SHARD = "data/{split}-00000-of-00001"
"""Path of a split that the hub shows as a data set: a single file, however many rows."""


@dataclass(frozen=True, kw_only=True)
class RowFormat(Generic[Item]):
    """A format of rows."""

    name: str
    build: Callable[[Item, int], Sequence[Row]]
    """Return the rows of an item; the number is that of the rows before it. Raises LeftOutError where it has none."""
    make_schema: Callable[[RowSource], pa.Schema] | None = None
    """Returns the schema of its parquet files; None where rows are JSON lines."""
    make_files: Callable[[RowSource], Mapping[str, str]] | None = None
    """Returns files that stand beside the rows: name -> content."""
    stem: str = "{split}"
    """Path of the rows of a split, without suffix."""
    group_rows: int = GROUP_ROWS
    """Rows in a row group of parquet at most."""

    def name_file(self, split: str) -> str:
        """Return the path of the rows of a split."""
        return f"{self.stem.format(split=split)}.{'jsonl' if self.make_schema is None else 'parquet'}"


ConversationFormat = RowFormat[TrainingConversation]
EpisodeFormat = RowFormat[TrainingEpisode]

CONVERSATIONS: tuple[ConversationFormat, ...] = (
    RowFormat(name="messages", build=conversations.build_messages_rows),
    RowFormat(
        name="sharegpt",
        build=conversations.build_sharegpt_rows,
        make_files=conversations.make_sharegpt_files,
    ),
    RowFormat(
        name="sharegpt-hermes",
        build=conversations.build_hermes_rows,
        make_files=conversations.make_hermes_files,
    ),
    RowFormat(
        name="alpaca",
        build=conversations.build_alpaca_rows,
        make_files=conversations.make_alpaca_files,
    ),
    RowFormat(
        name="parquet",
        build=conversations.build_table_rows,
        make_schema=conversations.make_table_schema,
        stem=SHARD,
    ),
)
"""Formats of supervised training."""
EPISODES: tuple[EpisodeFormat, ...] = (
    RowFormat(name=episodes.VERL, build=episodes.build_verl_rows, make_schema=episodes.make_verl_schema),
    RowFormat(name=episodes.SKYRL, build=episodes.build_skyrl_rows, make_schema=episodes.make_skyrl_schema),
    RowFormat(name="slime", build=episodes.build_slime_rows),
    RowFormat(name=episodes.NEMO_GYM, build=episodes.build_nemo_gym_rows),
    RowFormat(name=episodes.RAGEN, build=episodes.build_ragen_rows),
)
"""Formats of reinforcement learning."""
_ALL: tuple[RowFormat[Any], ...] = (*CONVERSATIONS, *EPISODES)
FORMATS: Mapping[str, RowFormat[Any]] = {row_format.name: row_format for row_format in _ALL}
"""Name of the format -> its row."""
