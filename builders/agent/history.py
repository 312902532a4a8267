"""Message history of a conversation, kept within the model's context length.

Beyond the limit, first old results are shortened, then the oldest turns are dropped; the instructions, the task and
the last turns stay. The history is cut well below the limit, because each cut invalidates the endpoint's prompt cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backends.llm.base import Message, estimate_tokens
from backends.llm.meter import TokenUsage

FIRST_MESSAGES = 2
"""Messages that always stay: the instructions and the task."""
LAST_MESSAGES = 6
"""Messages at the end that stay complete as long as possible."""
CUT_RATIO = 0.6
"""Share of the limit that remains after a cut."""
KEPT_CHARS = 200
"""Characters that remain at each end of an old result."""
MIN_LIMIT = 500
"""Smallest limit, in tokens."""
DROPPED_NOTICE = "[Earlier turns were dropped to fit the context length.]"


class MessageHistory:
    """Messages of a conversation as sent to the model. `limit`: in tokens, without the answer."""

    def __init__(self, limit: int) -> None:
        self.messages: list[Message] = []
        self._limit = limit
        self._ratio = 1.0

    def add(self, message: Message) -> None:
        """Append a message."""
        self.messages.append(message)

    def calibrate(self, sent: int, usage: TokenUsage) -> None:
        """Correct the token estimate by the endpoint's count; `sent` is the estimate of the request."""
        if sent and usage.prompt_tokens and not usage.estimated:
            self._ratio = min(max(usage.prompt_tokens / sent, 0.5), 4.0)

    def shorten_to_limit(self) -> bool:
        """Cut the history if it exceeds the limit; return whether something was cut."""
        if self._estimate_tokens() <= self._limit:
            return False
        self._cut_to(int(self._limit * CUT_RATIO))
        return True

    def shrink(self) -> bool:
        """Cut the history after the endpoint rejected it as too long; return whether it became shorter."""
        before = self._estimate_tokens()
        self._limit = max(int(min(self._limit, before) * CUT_RATIO), MIN_LIMIT)
        self._cut_to(self._limit)
        return self._estimate_tokens() < before

    def _estimate_tokens(self) -> int:
        return int(estimate_tokens(self.messages) * self._ratio)

    def _cut_to(self, target: int) -> None:
        for keep in (LAST_MESSAGES, 2, 0):
            self._shorten_results(target, keep)
            self._drop_turns(target, max(keep, 1))
            if self._estimate_tokens() <= target:
                return

    def _shorten_results(self, target: int, keep: int) -> None:
        """Shorten results, oldest first, except the last `keep` messages."""
        for place in range(1, len(self.messages) - keep):
            if self._estimate_tokens() <= target:
                return
            message = self.messages[place]
            if message.role in ("tool", "user") and len(message.text) > 2 * KEPT_CHARS:
                self.messages[place] = replace(message, text=_shorten_text(message.text, place < FIRST_MESSAGES))

    def _drop_turns(self, target: int, keep: int) -> None:
        """Drop complete turns, oldest first: a call is dropped with its results."""
        while self._estimate_tokens() > target:
            turns = _split_turns(self.messages)
            if len(turns) <= 1 or len(self.messages) - FIRST_MESSAGES - len(turns[0]) < keep:
                return
            del self.messages[FIRST_MESSAGES : FIRST_MESSAGES + len(turns[0])]
            if DROPPED_NOTICE not in self.messages[FIRST_MESSAGES - 1].text:
                task = self.messages[FIRST_MESSAGES - 1]
                self.messages[FIRST_MESSAGES - 1] = replace(task, text=f"{task.text}\n{DROPPED_NOTICE}")


def _split_turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Return the messages after the task, split before each message of the model."""
    turns: list[list[Message]] = []
    for message in messages[FIRST_MESSAGES:]:
        if message.role == "assistant" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _shorten_text(text: str, task: bool) -> str:
    kept = KEPT_CHARS * (10 if task else 1)
    return (
        f"{text[:kept]}\n[... dropped to fit the context length ...]\n{text[-kept:]}" if len(text) > 2 * kept else text
    )
