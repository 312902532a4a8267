"""Rollouts as a trainer takes them, from the parquet files of `mergemill trajectories export`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


@dataclass(frozen=True, kw_only=True)
class TokenisedRollout:
    """One conversation: the prompt, and what followed it, of which the mask marks what the model wrote."""

    prompt: list[int]
    completion: list[int]
    mask: list[int]
    logprobs: list[float]
    """Of the sampler; 0 where the mask is 0."""
    value: float | None
    """The reward."""

    @classmethod
    def make_missing(cls, tokenizer: Any) -> TokenisedRollout:
        """Return what stands for a rollout that the infrastructure ended: nothing is learned from it."""
        end = [tokenizer.eos_token_id]
        return cls(prompt=end, completion=end, mask=[0], logprobs=[0.0], value=None)


def read_rollouts(folder: Path) -> dict[tuple[str, int], TokenisedRollout]:
    """Return name of the task and attempt -> rollout.

    Raises:
        ValueError: a conversation has branches, which one row of a trainer cannot hold.
    """
    found = {}
    for path in sorted(folder.rglob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            attempt = json.loads(row["metadata"])["attempt"]
            found[row["instance_id"], attempt] = _read_row(row)
    return found


def _read_row(row: dict[str, Any]) -> TokenisedRollout:
    if row["parents"] != list(range(-1, len(row["parents"]) - 1)):
        raise ValueError(f"{row['instance_id']}: the conversation has branches")
    begin = row["loss_mask"].index(1)
    return TokenisedRollout(
        prompt=row["input_ids"][:begin],
        completion=row["input_ids"][begin:],
        mask=row["loss_mask"][begin:],
        logprobs=row["logprobs"][begin:],
        value=row["value"],
    )
