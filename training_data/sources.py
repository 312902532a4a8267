"""Facts that the rows of a source have in common, whatever their format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Message = Mapping[str, Any]
"""A message in OpenAI's form."""


@dataclass(frozen=True, kw_only=True)
class RowSource:
    """A source of rows."""

    name: str
    """Name of the data set, by which trainers choose a reward function."""
    ability: str = ""
    """Thing that an episode trains, in verl's word."""
    players: Mapping[str, str] = field(default_factory=dict)
    """Format -> name under which its trainer finds the program that plays or grades an episode of this source."""
    columns: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types in parquet of the values that rows hold besides the columns of their format."""
    hermes_tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of LLaMA-Factory's `dataset_info.json` that differ where calls stand in the model's text."""


class LeftOutError(Exception):
    """A format cannot hold an item; the text is the reason."""
