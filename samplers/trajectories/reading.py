"""Requests of a rollout from the exchanges that the gateway recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from samplers.gateway.exchanges import Exchange, parse_exchange
from samplers.gateway.exchanges import read_log as read_gateway_log
from samplers.gateway.translation import to_chat_answer, to_chat_messages
from samplers.trajectories.requests import ModelRequest
from taskdb.artifacts import Artifacts
from taskdb.records.rollouts import Rollout


def read_requests(exchanges: Iterable[Exchange]) -> list[ModelRequest]:
    """Return the requests of exchanges in order, as they were sent upstream, in the form of chat completions."""
    return [_read_request(exchange) for exchange in exchanges]


def load_exchanges(rollout: Rollout, artifacts: Artifacts) -> list[Exchange]:
    """Return the exchanges of the last run of a stored rollout; none where no log is stored.

    Raises:
        InputError: the artifact is missing or damaged.
    """
    if rollout.exchanges is None:
        return []
    log = read_gateway_log(artifacts.get(rollout.exchanges).splitlines(keepends=True))
    order = log.runs.get(log.last_run, ())
    return [parse_exchange(log.ends[number]) for number in order if number in log.ends]


def _read_request(exchange: Exchange) -> ModelRequest:
    messages, tools = to_chat_messages(json.loads(exchange.request), exchange.upstream_dialect)
    answer = None
    error = f"{exchange.error.kind}: {exchange.error.detail}" if exchange.error else ""
    if exchange.response is not None and not error:
        answer = to_chat_answer(exchange.response, exchange.upstream_dialect)
    return ModelRequest(
        exchange=exchange.exchange,
        messages=tuple(messages),
        tools=tuple(tools),
        answer=answer,
        finish_reason=exchange.finish_reason,
        error=error or ("" if answer is not None else f"status {exchange.status}"),
        prompt_tokens=exchange.prompt_tokens,
        completion_tokens=exchange.completion_tokens,
        seconds=exchange.seconds,
        started_at=exchange.started_at,
        prompt_token_ids=exchange.prompt_token_ids,
        completion_token_ids=exchange.completion_token_ids,
        logprobs=_read_logprobs(exchange.logprobs),
    )


def _read_logprobs(entries: Sequence[Mapping[str, Any]] | None) -> tuple[float, ...] | None:
    """Return the log-probability of each token; None where a value is missing."""
    values = [entry.get("logprob") for entry in entries or ()]
    return tuple(map(float, values)) if values and None not in values else None  # type: ignore[arg-type]
