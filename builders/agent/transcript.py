"""Transcript of a conversation: every message and call, for people, for the evaluation of prompts, and for replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from backends.llm.base import Message, ModelReply, ToolCall
from backends.llm.meter import UsageMeter

SHOWN_RESULT_CHARS = 600
"""Characters of a result in `format_markdown`."""


class RecordedCall(BaseModel):
    """A tool call as the model made it. `arguments` is None when they could not be parsed."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    arguments: Mapping[str, Any] | None
    problem: str = ""


class TranscriptEvent(BaseModel):
    """One event of a conversation.

    `message`: a message to the model (`role`). `reply`: its reply, with calls, tokens, cost and seconds. `result`: a
    tool's result. `failed`: requests that failed before the reply (`text`). `trimmed`: old messages were shortened or
    dropped. `ended`: a round ended; `name` is the tool or the stop reason.
    """

    model_config = ConfigDict(frozen=True)
    event: Literal["message", "reply", "result", "failed", "trimmed", "ended"]
    role: str = ""
    name: str = ""
    text: str = ""
    reasoning: str = ""
    calls: tuple[RecordedCall, ...] = ()
    call_id: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @field_validator("event", mode="before")
    @classmethod
    def _convert_former_name(cls, value: object) -> object:
        """Return the current name of an event in a transcript of an earlier version."""
        return {"told": "message", "said": "reply"}.get(str(value), value)


class Transcript(BaseModel):
    """A conversation. `prompts` is the hash of its prompts; the sums include failed requests."""

    model: str
    prompts: str
    events: tuple[TranscriptEvent, ...] = ()
    requests: int = 0
    failed_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    model_seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """Return the transcript as JSON, for an artifact."""
        return json.dumps(self.model_dump(exclude_defaults=True), ensure_ascii=False, indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Transcript:
        """Return the transcript of an artifact."""
        return cls.model_validate_json(content)

    def format_markdown(self, *, shown: int = SHOWN_RESULT_CHARS) -> str:
        """Return a text for people, without times and costs; results are cut at `shown` characters."""
        return "\n".join(_format_event(event, shown) for event in self.events if event.event != "failed") + "\n"


class TranscriptRecorder:
    """Recorder of a running conversation."""

    def __init__(self, model: str, prompts: str) -> None:
        self._model = model
        self._prompts = prompts
        self._events: list[TranscriptEvent] = []

    def record_message(self, message: Message) -> None:
        """Record a message to the model that is no tool result."""
        self._events.append(TranscriptEvent(event="message", role=message.role, text=message.text))

    def record_reply(self, reply: ModelReply) -> None:
        """Record the model's reply."""
        usage = reply.usage
        self._events.append(
            TranscriptEvent(
                event="reply",
                text=reply.text,
                reasoning=reply.reasoning,
                calls=tuple(map(_create_recorded_call, reply.tool_calls)),
                name=reply.finish_reason,
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                completion_tokens=usage.completion_tokens,
                cost=reply.cost,
                seconds=round(reply.seconds, 3),
            )
        )

    def record_result(self, call: ToolCall, text: str, seconds: float) -> None:
        """Record the result of a tool."""
        self._events.append(
            TranscriptEvent(event="result", name=call.name, call_id=call.id, text=text, seconds=round(seconds, 3))
        )

    def record_event(self, event: Literal["failed", "trimmed", "ended"], name: str, text: str) -> None:
        """Record any other event."""
        self._events.append(TranscriptEvent(event=event, name=name, text=text))

    def build_transcript(self, meter: UsageMeter) -> Transcript:
        """Return the transcript so far, with the sums of the meter."""
        return Transcript(
            model=self._model,
            prompts=self._prompts,
            events=tuple(self._events),
            requests=meter.requests,
            failed_requests=meter.failed_requests,
            prompt_tokens=meter.prompt_tokens,
            cached_tokens=meter.cached_tokens,
            completion_tokens=meter.completion_tokens,
            cost=meter.cost,
            model_seconds=round(meter.seconds, 3),
        )


def _create_recorded_call(call: ToolCall) -> RecordedCall:
    return RecordedCall(id=call.id, name=call.name, arguments=call.arguments, problem=call.problem)


def _format_event(event: TranscriptEvent, shown: int) -> str:
    text = event.text.rstrip() if len(event.text) <= shown else f"{event.text[:shown].rstrip()}\n[...]"
    if event.event == "reply":
        calls = [f"-> {call.name} {json.dumps(call.arguments)}" for call in event.calls]
        return "\n".join(["## model", *([event.text.rstrip()] if event.text else []), *calls, ""])
    title = {"message": event.role, "result": f"result of {event.name}"}.get(
        event.event, f"{event.event}: {event.name}"
    )
    return f"## {title}\n{text}\n" if text else f"## {title}\n"
