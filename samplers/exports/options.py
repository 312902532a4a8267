"""Formats of training data, and the options that an export of trajectories can be given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.errors import UsageError


class TrainingFormat(StrEnum):
    """Formats of training data."""

    MESSAGES = "messages"
    SHAREGPT = "sharegpt"
    PARQUET = "parquet"
    ATIF = "atif"


KEEP = "keep"
DROP = "drop"
STRIP = "strip"


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of an export."""

    format: TrainingFormat
    per_request: bool = False
    """A row for each answer; else for each conversation, or tree of tokens."""
    hermes: bool = False
    """ShareGPT with calls in the text."""
    system: str = KEEP
    """`keep`, `drop`, `strip`, or `replace`: the fate of the texts of the system that the model was given at sampling.

    `strip` cuts out the text that `mergemill sample --system` added, and keeps the scaffold's own.
    """
    system_text: str | None = None
    """Replaces them; None where they are kept or dropped."""

    def check(self) -> None:
        """Raise UsageError where options exclude each other."""
        if self.hermes and self.format is not TrainingFormat.SHAREGPT:
            raise UsageError("--hermes is a form of --format sharegpt")
        if self.system != KEEP and self.format is TrainingFormat.PARQUET:
            raise UsageError("--system changes texts, and parquet has tokens as they were sampled")
