"""A rollout as other tools store it, and the requests of its conversations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from core.text import encode_json_text
from samplers.trajectories.requests import ModelRequest, normalise_message

Message = dict[str, Any]
ROLES = frozenset(("system", "user", "assistant", "tool"))


class ForeignFormatError(Exception):
    """A file or row is not the document that its format requires; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class AnswerFacts:
    """Facts that are known of an answer besides its message."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    started_at: str = ""
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ForeignConversation:
    """Messages in OpenAI's form. `facts`: place of an answer among the messages -> the facts that are known of it.

    Answers at the places in `copied` are context alone.
    """

    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]] = ()
    facts: dict[int, AnswerFacts] = field(default_factory=dict)
    copied: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ForeignRollout:
    """A rollout of another tool."""

    instances: Sequence[str]
    """Names by which its task may be known, the best name first."""
    scaffold: str
    model: str
    scaffold_version: str = ""
    submission: bytes | None = None
    """None where it has none, which is not an empty value."""
    conversations: Sequence[ForeignConversation] = ()
    line: int = 0
    """Line of its file, 0 for the whole file."""

    def compute_origin(self, format_name: str) -> str:
        """Return the fields that distinguish it from every other rollout: the format and a hash of the content."""
        parts = [
            self.scaffold,
            self.model,
            [list(conversation.messages) for conversation in self.conversations],
            list(self.instances),
        ]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        digest.update(self.submission or b"")
        return f"{format_name}:{digest.hexdigest()[:16]}"


def list_requests(rollout: ForeignRollout) -> list[ModelRequest]:
    """Return a request for each answer: the messages before it, as far as the file has them."""
    made: list[ModelRequest] = []
    for conversation in rollout.conversations:
        for place, message in enumerate(conversation.messages):
            if message["role"] != "assistant" or place in conversation.copied:
                continue
            facts = conversation.facts.get(place, AnswerFacts())
            made.append(
                ModelRequest(
                    exchange=len(made),
                    messages=tuple(conversation.messages[:place]),
                    tools=tuple(conversation.tools),
                    answer=message,
                    prompt_tokens=facts.prompt_tokens,
                    completion_tokens=facts.completion_tokens,
                    started_at=facts.started_at,
                    prompt_token_ids=facts.prompt_token_ids,
                    completion_token_ids=facts.completion_token_ids,
                    logprobs=facts.logprobs,
                )
            )
    return made


def read_messages(messages: object) -> list[Message]:
    """Return messages in OpenAI's form; fields that no model is given are left out, and so are other roles.

    Raises:
        ForeignFormatError: they are not a list of messages.
    """
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ForeignFormatError("the messages are no list of objects")
    for number, message in enumerate(messages):
        if not _has_form(message):
            raise ForeignFormatError(f"content or calls of message {number} have another form than OpenAI's")
    kept = ("role", "content", "tool_calls", "tool_call_id", "reasoning_content", "name")
    normalised = [
        normalise_message({name: message[name] for name in kept if name in message})
        for message in messages
        if message.get("role") in ROLES
    ]
    if not any(message["role"] == "assistant" for message in normalised):
        raise ForeignFormatError("there is no message of the assistant")
    return normalised


def _has_form(message: Message) -> bool:
    content, calls = message.get("content"), message.get("tool_calls") or []
    if isinstance(content, list):
        has_content = all(isinstance(part, dict) for part in content)
    else:
        has_content = content is None or isinstance(content, str)
    has_calls = isinstance(calls, list) and all(
        isinstance(call, dict) and isinstance(call.get("function") or {}, dict) for call in calls
    )
    return has_content and has_calls


def read_patch(value: object) -> bytes | None:
    """Return a patch as it stands in JSON; None where there is none.

    Raises:
        ForeignFormatError: it is not text.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise ForeignFormatError("the patch is no text")
    return encode_json_text(value)
