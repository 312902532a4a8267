"""Content of a trajectory: its requests and answers as a single JSON document, the artifact `Trajectory.content`.

Messages and lists of tools are stored once; requests name them by their place. Of the tokens of a prompt only those
behind prompt and completion of the parent are stored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pydantic import ConfigDict

from samplers.trajectories.requests import MessageMap, ModelRequest, normalise_message
from taskdb.records.base import Part

SCHEMA = 1


class RecordedRequest(Part):
    """A request of a trajectory. `prompt` and `answer` are places in `TrajectoryContent.messages`."""

    exchange: int
    parent: int | None
    """Place of the request that it continues; null for the root and its retries."""
    tools: int
    """Place in `TrajectoryContent.toolsets`."""
    prompt: tuple[int, ...]
    answer: int | None
    """Null where the request failed."""
    finish_reason: str | None = None
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    started_at: str = ""
    new_prompt_token_ids: tuple[int, ...] | None = None
    """Those behind the parent's prompt and completion."""
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


class TrajectoryContent(Part):
    """Requests of a tree in their order, with the messages and tools that they name."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    schema_version: int = SCHEMA
    has_token_ids: bool
    """Whether prefixes are those of token ids; else of messages."""
    is_ambiguous: bool = False
    """Whether its root continues several requests of the rollout equally well, so that it stands alone."""
    messages: tuple[dict[str, Any], ...]
    toolsets: tuple[tuple[dict[str, Any], ...], ...]
    requests: tuple[RecordedRequest, ...]

    def get_prompt(self, place: int) -> list[dict[str, Any]]:
        """Return the messages of a request."""
        return [self.messages[number] for number in self.requests[place].prompt]

    def get_answer(self, place: int) -> dict[str, Any] | None:
        """Return the answer to a request; None where it failed."""
        answer = self.requests[place].answer
        return None if answer is None else self.messages[answer]

    def get_tools(self, place: int) -> list[dict[str, Any]]:
        """Return the tools of a request."""
        return list(self.toolsets[self.requests[place].tools])

    @cached_property
    def answered(self) -> tuple[int, ...]:
        """Places of the requests that have an answer."""
        return tuple(place for place, request in enumerate(self.requests) if request.answer is not None)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Places of the answered requests that no answered request continues."""
        inner = {self.requests[place].parent for place in self.answered}
        return tuple(place for place in self.answered if place not in inner)

    def trace_path(self, place: int) -> list[int]:
        """Return the places from the root to a request."""
        path = [place]
        while (parent := self.requests[path[-1]].parent) is not None:
            path.append(parent)
        return path[::-1]


def pack_content(
    requests: Sequence[ModelRequest],
    parents: Sequence[int | None],
    *,
    has_token_ids: bool,
    is_ambiguous: bool = False,
) -> TrajectoryContent:
    """Return the content of a tree; `parents`: place of each request's parent among these requests."""
    messages, toolsets = _Pool(), _Pool()
    place_messages = MessageMap(lambda message: messages.place(normalise_message(message)))
    made = []
    for request, parent in zip(requests, parents, strict=True):
        before = requests[parent] if parent is not None else None
        made.append(
            RecordedRequest(
                exchange=request.exchange,
                parent=parent,
                tools=toolsets.place(list(request.tools)),
                prompt=tuple(place_messages.apply(request.messages)),
                answer=None if request.answer is None else messages.place(normalise_message(request.answer)),
                finish_reason=request.finish_reason,
                error=request.error,
                prompt_tokens=request.prompt_tokens,
                completion_tokens=request.completion_tokens,
                seconds=request.seconds,
                started_at=request.started_at,
                new_prompt_token_ids=_cut_prompt(request, before) if has_token_ids else None,
                completion_token_ids=request.completion_token_ids if has_token_ids else None,
                logprobs=request.logprobs if has_token_ids else None,
            )
        )
    return TrajectoryContent(
        has_token_ids=has_token_ids,
        is_ambiguous=is_ambiguous,
        messages=tuple(messages.values),
        toolsets=tuple(tuple(tools) for tools in toolsets.values),
        requests=tuple(made),
    )


def write_content(content: TrajectoryContent) -> bytes:
    """Return the content as JSON; equal contents give equal bytes."""
    text = json.dumps(content.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="surrogatepass")


def read_content(data: bytes) -> TrajectoryContent:
    """Return the content of an artifact."""
    return TrajectoryContent.model_validate(json.loads(data.decode(errors="surrogatepass")))


def _cut_prompt(request: ModelRequest, parent: ModelRequest | None) -> tuple[int, ...] | None:
    if request.prompt_token_ids is None or parent is None:
        return request.prompt_token_ids
    known = len(parent.prompt_token_ids or ()) + len(parent.completion_token_ids or ())
    return request.prompt_token_ids[known:]


class _Pool:
    """Values, each stored once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        """Return the place of a value, which is added where it is new."""
        key = json.dumps(value, sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]
