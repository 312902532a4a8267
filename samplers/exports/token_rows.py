"""Parquet rows of tokens with masks, for trainers that take tokens as they were sampled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from samplers.exports.facts import ExportedTrajectory, build_identity, build_metadata
from samplers.trajectories.layouts import NO_REQUEST, TokenRow, make_request_rows, merge_requests

_IDENTITY = ("instance_id", "environment", "repo", "license", "language", "trajectory_id")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _IDENTITY),
        ("resolved", pa.bool_()),
        ("value", pa.float64()),
        ("input_ids", pa.list_(pa.int64())),
        ("position_ids", pa.list_(pa.int64())),
        ("parents", pa.list_(pa.int64())),
        ("loss_mask", pa.list_(pa.int8())),
        ("logprobs", pa.list_(pa.float32())),
        ("exchanges", pa.list_(pa.int64())),
        ("metadata", pa.string()),
    ]
)


def build_rows(item: ExportedTrajectory, *, per_request: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of a trajectory with token ids; `logprobs` is null where the upstream gave none."""
    rows = make_request_rows(item.content) if per_request else iter([merge_requests(item.content)])
    for row in rows:
        yield _build_row(item, row)


def _build_row(item: ExportedTrajectory, row: TokenRow) -> dict[str, Any]:
    exchanges = sorted({int(one) for one in row.exchanges if one != NO_REQUEST})
    return {
        **build_identity(item),
        "resolved": item.rollout.resolved,
        "value": item.trajectory.value,
        "input_ids": row.token_ids,
        "position_ids": row.position_ids,
        "parents": row.parents,
        "loss_mask": row.loss_mask.astype("int8"),
        "logprobs": row.logprobs,
        "exchanges": row.exchanges,
        "metadata": json.dumps(build_metadata(item, exchanges)),
    }
