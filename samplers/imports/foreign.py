"""A rollout as other tools store it, and the requests of its conversations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backends.llm.conversations.parts import ConversationError
from backends.llm.conversations.reader import read_conversation
from backends.llm.conversations.tools import read_tools
from core.text import encode_json_text
from samplers.trajectories.requests import ModelRequest, normalise_message

Message = dict[str, Any]


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


def make_conversation(
    messages: object,
    tools: object = (),
    *,
    system: object = None,
    facts: Mapping[int, AnswerFacts] | None = None,
    copied: Collection[int] = (),
) -> ForeignConversation:
    """Return a conversation of messages in the form of any model API.

    Args:
        messages: messages as a file has them.
        tools: tools that the model was offered, a list or JSON of it.
        system: text of the system that stands outside of the messages.
        facts: facts of answers by their places in `messages`.
        copied: places in `messages` of answers that are context alone.

    Raises:
        ForeignFormatError: they have a form that is not read; the text names it.
    """
    try:
        read = read_conversation(messages, system=system)
        offered = read_tools(tools)
    except ConversationError as error:
        raise ForeignFormatError(str(error)) from error
    if not any(message.message["role"] == "assistant" for message in read):
        raise ForeignFormatError("there is no message of the assistant")
    return ForeignConversation(
        messages=[normalise_message(message.message) for message in read],
        tools=offered,
        facts={place: (facts or {})[at.source] for place, at in enumerate(read) if at.source in (facts or {})},
        copied=frozenset(place for place, at in enumerate(read) if at.source in copied),
    )


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
