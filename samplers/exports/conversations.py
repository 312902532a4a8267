"""Conversations to train on: the rows of a trajectory in terms of messages, each answer trained in exactly one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from samplers.scaffolds.base import SYSTEM_FILE
from samplers.trajectories.content import TrajectoryContent
from samplers.trajectories.requests import make_key

Message = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TrainedConversation:
    """Messages of a request and its answer."""

    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]]
    exchanges: Sequence[int | None]
    """For each message: the exchange whose answer it is and as which it is trained here; None for all others."""

    @property
    def n_trained(self) -> int:
        """Number of messages that are trained."""
        return sum(exchange is not None for exchange in self.exchanges)

    @property
    def is_whole(self) -> bool:
        """Whether every message of the assistant is trained, so that a format without masks can hold it."""
        pairs = zip(self.messages, self.exchanges, strict=True)
        return all(exchange is not None for message, exchange in pairs if message["role"] == "assistant")


def make_conversations(content: TrajectoryContent, *, per_request: bool) -> list[TrainedConversation]:
    """Return the conversations of a trajectory.

    Per request there is a conversation for each answer. Otherwise there is a conversation for each leaf of the tree,
    with the answers on its path that no conversation before has; an answer that the messages of no leaf repeat as it
    was has a conversation of its own.
    """
    if per_request:
        return [_make_conversation(content, place, {place}) for place in content.answered]
    open_answers = set(content.answered)
    made = []
    for place in (*content.leaves, *content.answered):
        if place not in open_answers:
            continue
        conversation = _make_conversation(content, place, open_answers)
        made.append(conversation)
        kept = {exchange for exchange in conversation.exchanges if exchange is not None}
        open_answers -= {open_answer for open_answer in open_answers if content.requests[open_answer].exchange in kept}
    return made


def replace_system(conversation: TrainedConversation, text: str | None) -> TrainedConversation:
    """Return the conversation without messages of the system, or with `text` as the only, at the beginning."""
    pairs = zip(conversation.messages, conversation.exchanges, strict=True)
    kept = [(message, exchange) for message, exchange in pairs if message["role"] != "system"]
    if text is not None:
        kept.insert(0, ({"role": "system", "content": text}, None))
    return replace(
        conversation, messages=[message for message, _ in kept], exchanges=[exchange for _, exchange in kept]
    )


def strip_system(conversation: TrainedConversation, text: str) -> TrainedConversation:
    """Return the conversation without a text in the messages of the system; a message of nothing else is left out.

    White space may be other than the text's, as programs indent and wrap it. A line before it that names its file in
    the container goes with it.

    Args:
        conversation: messages and answers.
        text: text that was added to the system prompt at sampling; empty for none.
    """
    if not text.split():
        return conversation
    words = r"\s+".join(map(re.escape, text.split()))
    pattern = re.compile(rf"(?:^[^\n]*{re.escape(SYSTEM_FILE)}[^\n]*\n)?\s*{words}", re.MULTILINE)
    kept = []
    for message, exchange in zip(conversation.messages, conversation.exchanges, strict=True):
        if message["role"] == "system":
            content = _strip_content(message.get("content"), pattern)
            if not content:
                continue
            message = {**message, "content": content}  # noqa: PLW2901 - the same one
        kept.append((message, exchange))
    return replace(
        conversation, messages=[message for message, _ in kept], exchanges=[exchange for _, exchange in kept]
    )


def _strip_content(content: Any, pattern: re.Pattern[str]) -> Any:
    """Return the content of a message, text or parts, without the matches of a pattern."""
    if isinstance(content, list):
        parts = [{**part, "text": _cut(part["text"], pattern)} if "text" in part else part for part in content]
        return [part for part in parts if part.get("text") != ""]
    return _cut(content or "", pattern)


def _cut(text: str, pattern: re.Pattern[str]) -> str:
    """Return a text without the matches of a pattern, and with an empty line in the place of each."""
    if not pattern.search(text):
        return text
    return "\n\n".join(part for part in (rest.strip() for rest in pattern.split(text)) if part)


def _make_conversation(content: TrajectoryContent, place: int, trained: set[int]) -> TrainedConversation:
    prompt = content.requests[place].prompt
    messages = [*content.get_prompt(place), content.get_answer(place) or {}]
    exchanges: list[int | None] = [None] * len(messages)
    exchanges[-1] = content.requests[place].exchange
    for step in content.trace_path(place)[:-1]:
        request = content.requests[step]
        at = len(request.prompt)
        if (
            step in trained
            and _is_same_beginning(content, prompt[:at], request.prompt)
            and _is_same(content, prompt[at : at + 1], request.answer)
        ):
            exchanges[at] = request.exchange
    return TrainedConversation(messages=messages, tools=content.get_tools(place), exchanges=exchanges)


def _is_same_beginning(content: TrajectoryContent, first: Sequence[int], second: Sequence[int]) -> bool:
    return len(first) == len(second) and all(
        number == other or make_key(content.messages[number]) == make_key(content.messages[other])
        for number, other in zip(first, second, strict=True)
    )


def _is_same(content: TrajectoryContent, numbers: Sequence[int], answer: int | None) -> bool:
    """Return whether the message at a place is an answer; blanks inside the arguments of calls may differ."""
    if not numbers or answer is None:
        return False
    return make_key(content.messages[numbers[0]]) == make_key(content.messages[answer])
