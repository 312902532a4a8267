"""A conversation that is kept short enough for its model.

When it grows beyond what the model can read, first old results are shortened, then the oldest turns are dropped; the
instructions, the task and the last turns stay. It is cut well below the limit, so that it happens seldom: each time
the endpoint has to read everything anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backends.llm.base import Message, estimate
from backends.llm.meter import Usage

FIRST = 2
"""Messages that always stay: the instructions and the task."""
LAST = 6
"""Messages at the end that stay whole as long as that is possible."""
CUT_TO = 0.6
"""Of the limit, what is left after cutting."""
KEPT_CHARS = 200
"""Of an old result."""
SMALLEST = 500
"""Tokens below which no limit makes sense."""
DROPPED = "[Earlier turns are left out here for want of room.]"


class History:
    """The messages of a conversation as the model gets them. `limit` in tokens, the answer's aside."""

    def __init__(self, limit: int) -> None:
        self.messages: list[Message] = []
        self._limit = limit
        self._ratio = 1.0

    def add(self, message: Message) -> None:
        """One more message."""
        self.messages.append(message)

    def learn(self, sent: int, usage: Usage) -> None:
        """Set the estimate right by what an endpoint counted; `sent` is what was estimated."""
        if sent and usage.prompt_tokens and not usage.estimated:
            self._ratio = min(max(usage.prompt_tokens / sent, 0.5), 4.0)

    def fit(self) -> bool:
        """Make it short enough; whether something was cut."""
        if self._tokens() <= self._limit:
            return False
        self._cut(int(self._limit * CUT_TO))
        return True

    def shrink(self) -> bool:
        """The endpoint says that it is too long, whatever we think; whether it could be made shorter."""
        before = self._tokens()
        self._limit = max(int(min(self._limit, before) * CUT_TO), SMALLEST)
        self._cut(self._limit)
        return self._tokens() < before

    def _tokens(self) -> int:
        return int(estimate(self.messages) * self._ratio)

    def _cut(self, target: int) -> None:
        for keep in (LAST, 2, 0):
            self._shorten(target, keep)
            self._drop(target, max(keep, 1))
            if self._tokens() <= target:
                return

    def _shorten(self, target: int, keep: int) -> None:
        """Shorten results, the oldest first, `keep` messages at the end aside."""
        for place in range(1, len(self.messages) - keep):
            if self._tokens() <= target:
                return
            message = self.messages[place]
            if message.role in ("tool", "user") and len(message.text) > 2 * KEPT_CHARS:
                self.messages[place] = replace(message, text=_short(message.text, place < FIRST))

    def _drop(self, target: int, keep: int) -> None:
        """Drop whole turns, the oldest first: a call and its results go together."""
        while self._tokens() > target:
            turns = _turns(self.messages)
            if len(turns) <= 1 or len(self.messages) - FIRST - len(turns[0]) < keep:
                return
            del self.messages[FIRST : FIRST + len(turns[0])]
            if DROPPED not in self.messages[FIRST - 1].text:
                task = self.messages[FIRST - 1]
                self.messages[FIRST - 1] = replace(task, text=f"{task.text}\n{DROPPED}")


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """What follows the task, cut before each message of the model's."""
    turns: list[list[Message]] = []
    for message in messages[FIRST:]:
        if message.role == "assistant" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _short(text: str, task: bool) -> str:
    kept = KEPT_CHARS * (10 if task else 1)
    return f"{text[:kept]}\n[... left out for want of room ...]\n{text[-kept:]}" if len(text) > 2 * kept else text
