"""Parquet rows of tokens with masks, for trainers that take tokens as they were sampled."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa

from samplers.exports.facts import ExportedTrajectory, build_identity, build_metadata
from samplers.trajectories.layouts import NO_REQUEST, TokenRow, make_request_rows, merge_requests
from training_data.formats import SHARD, RowFormat
from training_data.sources import Row, RowSource

_IDENTITY = ("instance_id", "environment", "repo", "license", "language", "trajectory_id")
COLUMNS = {
    **dict.fromkeys(_IDENTITY, pa.string()),
    "resolved": pa.bool_(),
    "value": pa.float64(),
    "input_ids": pa.list_(pa.int64()),
    "position_ids": pa.list_(pa.int64()),
    "parents": pa.list_(pa.int64()),
    "loss_mask": pa.list_(pa.int8()),
    "logprobs": pa.list_(pa.float32()),
    "exchanges": pa.list_(pa.int64()),
    "metadata": pa.string(),
}
TOKENS = RowSource(name="mergemill", columns=COLUMNS)
GROUP_ROWS = 100
"""Rows of a row group; they are long."""


def make_format(*, per_request: bool) -> RowFormat[ExportedTrajectory]:
    """Return the format of rows of tokens, which no other source has."""
    return RowFormat(
        name="tokens",
        build=partial(build_rows, per_request=per_request),
        make_schema=lambda source: pa.schema(list(source.columns.items())),
        stem=SHARD,
        group_rows=GROUP_ROWS,
    )


def build_rows(item: ExportedTrajectory, number: int, *, per_request: bool) -> list[Row]:
    """Return the rows of a trajectory with token ids; `logprobs` is null where the upstream gave none."""
    del number
    rows = make_request_rows(item.content) if per_request else iter([merge_requests(item.content)])
    return [_build_row(item, row) for row in rows]


def _build_row(item: ExportedTrajectory, row: TokenRow) -> Row:
    exchanges = sorted({int(exchange) for exchange in row.exchanges if exchange != NO_REQUEST})
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
