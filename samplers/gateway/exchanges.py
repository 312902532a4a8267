"""Exchanges of a rollout with its model, as recorded, and their reader.

A log is a file of JSON lines that are only appended to. Events:

- `run`: a run of the rollout begins; `run` counts from 0.
- `begin`: a request is about to be sent upstream: `exchange` (number), `key`, `fingerprint`, `run`,
  `tools` (whether it offers any), `at`.
- `end`: the exchange as a whole, see `Exchange`.
- `sent`: the client was given the whole answer.
- `replay`: a request was answered from the record: `exchange`, `run`, `at`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from core.errors import InputError
from samplers.gateway.json_text import Json
from taskdb.records.base import Part


class ExchangeError(Part):
    """Why an exchange has no answer. `kind`: of `samplers.gateway.failures.ExchangeFailure`."""

    kind: str
    detail: str


class Exchange(Part):
    """A request and its answer, as of its `end` line.

    `received` is the client's body, `request` the body sent upstream, both as text; `response` is the complete answer
    in the upstream's dialect. Token ids and log-probs are the upstream's own, None where it gives none.
    """

    exchange: int
    """Number in the log, by beginning."""
    key: str
    """Idempotency-Key sent upstream."""
    rollout: str
    dialect: str
    upstream_dialect: str
    streamed: bool
    received: str
    request: str
    changes: tuple[str, ...]
    """Fields that `request` has otherwise than `received`."""
    status: int
    response: Json | None
    error: ExchangeError | None
    started_at: str
    seconds: float
    first_token_seconds: float | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float
    prompt_token_ids: tuple[int, ...] | None
    completion_token_ids: tuple[int, ...] | None
    logprobs: tuple[Json, ...] | None
    attempts: int
    finish_reason: str | None


@dataclass
class LogContent:
    """Records that a log holds."""

    ends: dict[int, Json] = field(default_factory=dict)
    """Exchange -> its `end` line."""
    begins: dict[int, Json] = field(default_factory=dict)
    """Exchange -> its last `begin` line."""
    sent: set[int] = field(default_factory=set)
    runs: dict[int, list[int]] = field(default_factory=dict)
    """Run -> exchanges in the order of their requests, each once."""

    @property
    def last_run(self) -> int:
        """Number of the last run; -1 for none."""
        return max(self.runs, default=-1)

    def add(self, event: Json) -> None:
        """Add a line."""
        kind = event.get("event")
        if kind == "run":
            self.runs.setdefault(event["run"], [])
        elif kind == "end":
            self.ends[event["exchange"]] = event
        elif kind == "sent":
            self.sent.add(event["exchange"])
        elif kind in ("begin", "replay"):
            if kind == "begin":
                self.begins[event["exchange"]] = event
            order = self.runs.setdefault(event["run"], [])
            if event["exchange"] not in order:
                order.append(event["exchange"])

    def find_doubtful(self) -> list[Json]:
        """Return the `begin` lines of exchanges without an end: the upstream may have answered them."""
        return [begin for number, begin in self.begins.items() if number not in self.ends]


def read_log(lines: Iterable[bytes], dropped: frozenset[str] = frozenset()) -> LogContent:
    """Return the records that a log holds.

    A last line without its end is left out: it was being written when the machine stopped.

    Args:
        lines: lines with their ends.
        dropped: keys of exchanges that are not kept, to save memory.

    Raises:
        ValueError: another line is not a JSON object.
    """
    content = LogContent()
    for line in lines:
        if line.endswith(b"\n"):
            event = json.loads(line)
            content.add({key: value for key, value in event.items() if key not in dropped})
    return content


def read_exchanges(path: Path, run: int | None = None) -> list[Exchange]:
    """Return the ended exchanges of a run of a rollout, in the order of their requests.

    Args:
        path: the rollout's log.
        run: number of the run; None for the last.

    Raises:
        InputError: there is not such a file, or it is not a log.
    """
    try:
        with path.open("rb") as log:
            content = read_log(log)
    except OSError as error:
        raise InputError(f"cannot read the log {path}: {error.strerror}") from error
    except (ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is not a log of the gateway: {error}") from error
    order = content.runs.get(content.last_run if run is None else run, ())
    return [parse_exchange(content.ends[number]) for number in order if number in content.ends]


def parse_exchange(event: Mapping[str, Any]) -> Exchange:
    """Return the exchange of an `end` line."""
    return _EXCHANGE.validate_python({key: value for key, value in event.items() if key != "event"})


_EXCHANGE = TypeAdapter(Exchange)
