"""Rules that clear parts of older answers and outputs from the history that a model is sent.

`note` follows MiniMax's note on M2.1 (past 30 % of the window the first answer, the last five and the outputs of tools
are kept), `talk` their talk (outputs and reasoning of older turns are cleared). Messages of system and user are never
changed, and calls stay with their outputs, as an API refuses one without the other.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from backends.llm.conversations.reader import REASONING_FIELDS

ChatMessage = Mapping[str, Any]
"""Message of chat completions."""
CLEARED = "[cleared]"
"""Text in the place of one that was cleared, where an API wants a text."""
_THOUGHT = re.compile(r"<think>.*?</think>\s*", re.DOTALL)


class Kept(StrEnum):
    """Answers whose texts, reasoning or outputs are kept."""

    KEPT = "kept"
    """Those of all answers."""
    LAST = "last"
    """Those of the first and last answers that the rule keeps."""
    NONE = "none"
    """Those of the newest answer alone."""


class ContextRule(ABC):
    """Rule of a conversation's history. An object serves many rollouts at once, so it has no state of a rollout."""

    @property
    @abstractmethod
    def version(self) -> str:
        """Name and settings; part of the version of a scaffold, and so of a rollout's identity."""

    @abstractmethod
    def clear(self, messages: Sequence[ChatMessage], n_tokens: int) -> list[ChatMessage]:
        """Return the messages to go on with.

        Args:
            messages: history, from the system prompt to the last output.
            n_tokens: number of its tokens.
        """


class KeepAll(ContextRule):
    """Rule that clears nothing."""

    @property
    def version(self) -> str:
        """See ContextRule."""
        return "none"

    def clear(self, messages: Sequence[ChatMessage], n_tokens: int) -> list[ChatMessage]:
        """Return the messages."""
        del n_tokens
        return list(messages)


@dataclass(frozen=True, kw_only=True)
class ClearingRule(ContextRule):
    """Rule that clears parts of the answers between the first and the last."""

    name: str
    window: int = 128_000
    """Tokens of the model's window."""
    trigger: float = 0.3
    """Share of the window, 0..1, up to which nothing is cleared."""
    first: int = 0
    """Number of answers at the beginning that are kept whole."""
    last: int = 5
    """Number of answers at the end that are kept whole."""
    texts: Kept = Kept.KEPT
    reasoning: Kept = Kept.LAST
    outputs: Kept = Kept.LAST

    @property
    def version(self) -> str:
        """See ContextRule."""
        settings = ",".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self)[1:])
        return f"{self.name}({settings})"

    def clear(self, messages: Sequence[ChatMessage], n_tokens: int) -> list[ChatMessage]:
        """Return the messages with parts of older answers cleared, if they fill more than `trigger` of the window."""
        if n_tokens <= self.trigger * self.window:
            return list(messages)
        answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
        whole = {*answers[: self.first], *answers[max(0, len(answers) - self.last) :]}
        newest = set(answers[-1:])
        spared = {Kept.KEPT: set(answers), Kept.LAST: whole | newest, Kept.NONE: newest}
        cleared, place = [], -1
        for number, message in enumerate(messages):
            if message["role"] == "assistant":
                place = number
                message = _clear_answer(  # noqa: PLW2901 - the same one
                    message, keeps_text=place in spared[self.texts], keeps_reasoning=place in spared[self.reasoning]
                )
            elif message["role"] == "tool" and place not in spared[self.outputs]:
                message = {**message, "content": CLEARED}  # noqa: PLW2901 - the same one
            cleared.append(message)
        return cleared


def _clear_answer(message: ChatMessage, *, keeps_text: bool, keeps_reasoning: bool) -> ChatMessage:
    """Return an answer without its text or reasoning. One without a call keeps a text, which APIs require."""
    kept = dict(message)
    if not keeps_reasoning:
        for field in REASONING_FIELDS:
            kept.pop(field, None)
        if isinstance(text := kept.get("content"), str):
            kept["content"] = _THOUGHT.sub("", text)
    if not keeps_text and kept.get("content"):
        kept["content"] = "" if kept.get("tool_calls") else CLEARED
    return kept


KEEP_ALL = KeepAll()
PRESETS: Mapping[str, ContextRule] = {
    "none": KEEP_ALL,
    "note": ClearingRule(name="note", first=1, texts=Kept.LAST, outputs=Kept.KEPT),
    "talk": ClearingRule(name="talk"),
}
"""Name of `--context` -> rule."""
