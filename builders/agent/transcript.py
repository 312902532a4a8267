"""All that was said in a conversation, as it was said: for people, for judging prompts, and for playing it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from backends.llm.base import Message, Reply, ToolCall
from backends.llm.meter import Meter

SHOWN = 600
"""Characters of a result that `readable` shows."""


class Asked(BaseModel):
    """A tool call as the model made it. `arguments` is None when they could not be understood."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    arguments: Mapping[str, Any] | None
    problem: str = ""


class Event(BaseModel):
    """Something that happened.

    `told`: a message to the model (`role`). `said`: its reply, with calls, tokens, cost and seconds. `result`: of a
    tool. `failed`: requests that brought no answer before it came (`detail`). `trimmed`: old messages were shortened
    or dropped to make room. `ended`: a round ended, `name` says how.
    """

    model_config = ConfigDict(frozen=True)
    event: Literal["told", "said", "result", "failed", "trimmed", "ended"]
    role: str = ""
    name: str = ""
    text: str = ""
    reasoning: str = ""
    calls: tuple[Asked, ...] = ()
    call_id: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class Transcript(BaseModel):
    """A conversation. `prompts` is the hash of the prompts it was led by; the sums count failed requests, too."""

    model: str
    prompts: str
    events: tuple[Event, ...] = ()
    requests: int = 0
    failed_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    model_seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """As JSON, for an artifact."""
        return json.dumps(self.model_dump(exclude_defaults=True), ensure_ascii=False, indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Transcript:
        """The transcript of an artifact."""
        return cls.model_validate_json(content)

    def readable(self, *, shown: int = SHOWN) -> str:
        """For people: without times and costs, results cut at `shown` characters."""
        return "\n".join(_told(event, shown) for event in self.events if event.event != "failed") + "\n"


class Recorder:
    """Writes a transcript while a conversation goes on."""

    def __init__(self, model: str, prompts: str) -> None:
        self._model = model
        self._prompts = prompts
        self._events: list[Event] = []

    def told(self, message: Message) -> None:
        """A message that is no result of a tool."""
        self._events.append(Event(event="told", role=message.role, text=message.text))

    def said(self, reply: Reply) -> None:
        """The model's reply."""
        usage = reply.usage
        self._events.append(Event(
            event="said", text=reply.text, reasoning=reply.reasoning, calls=tuple(map(_asked, reply.tool_calls)),
            name=reply.finish, prompt_tokens=usage.prompt_tokens, cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens, cost=reply.cost, seconds=round(reply.seconds, 3),
        ))  # fmt: skip

    def result(self, call: ToolCall, text: str, seconds: float) -> None:
        """What a tool gave back."""
        self._events.append(
            Event(event="result", name=call.name, call_id=call.id, text=text, seconds=round(seconds, 3))
        )

    def note(self, event: Literal["failed", "trimmed", "ended"], name: str, text: str) -> None:
        """Anything else."""
        self._events.append(Event(event=event, name=name, text=text))

    def transcript(self, meter: Meter) -> Transcript:
        """What was written so far."""
        return Transcript(
            model=self._model, prompts=self._prompts, events=tuple(self._events), requests=meter.requests,
            failed_requests=meter.failed, prompt_tokens=meter.prompt_tokens, cached_tokens=meter.cached_tokens,
            completion_tokens=meter.completion_tokens, cost=meter.cost, model_seconds=round(meter.seconds, 3),
        )  # fmt: skip


def _asked(call: ToolCall) -> Asked:
    return Asked(id=call.id, name=call.name, arguments=call.arguments, problem=call.problem)


def _told(event: Event, shown: int) -> str:
    text = event.text.rstrip() if len(event.text) <= shown else f"{event.text[:shown].rstrip()}\n[...]"
    if event.event == "said":
        calls = [f"-> {call.name} {json.dumps(call.arguments)}" for call in event.calls]
        return "\n".join(["## model", *([event.text.rstrip()] if event.text else []), *calls, ""])
    title = {"told": event.role, "result": f"result of {event.name}"}.get(event.event, f"{event.event}: {event.name}")
    return f"## {title}\n{text}\n" if text else f"## {title}\n"
