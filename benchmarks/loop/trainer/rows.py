"""Rollouts as a trainer takes them, from the parquet files of `mergemill trajectories export`."""

from __future__ import annotations

import json
from collections.abc import Iterator
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

    A row of a trainer is one conversation. Where a rollout has several, as the model was shown another text of a
    malformed call than it wrote, the one with the most tokens of the model stands for it.
    """
    rollouts: dict[tuple[str, int], TokenisedRollout] = {}
    for path in sorted(folder.rglob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            key = (row["instance_id"], json.loads(row["metadata"])["attempt"])
            rollouts[key] = max(
                filter(None, (rollouts.get(key), *_read_paths(row))), key=lambda rollout: sum(rollout.mask)
            )
    return rollouts


def _read_paths(row: dict[str, Any]) -> Iterator[TokenisedRollout]:
    """Return the conversations of a row, whose tokens are a tree."""
    parents = row["parents"]
    for leaf in sorted(set(range(len(parents))) - set(parents)):
        path, at = [], leaf
        while at >= 0:
            path.append(at)
            at = parents[at]
        path.reverse()
        mask = [row["loss_mask"][token] for token in path]
        if 1 in mask:
            begin = mask.index(1)
            yield TokenisedRollout(
                prompt=[row["input_ids"][token] for token in path[:begin]],
                completion=[row["input_ids"][token] for token in path[begin:]],
                mask=mask[begin:],
                logprobs=[row["logprobs"][token] for token in path[begin:]],
                value=row["value"],
            )
