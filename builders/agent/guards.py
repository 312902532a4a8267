"""Guard that stops unproductive conversations: repeated calls, inspection without edits, replies without calls."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from backends.llm.base import ToolCall

MAX_REPEATS = 4
"""Limit of identical calls with the same result since the last edit."""
MAX_IDLE_CALLS = 24
"""Limit of calls since the last applied edit."""
IDLE_WARNING = 16
MAX_INVALID_REPLIES = 4
"""Limit of consecutive invalid replies: no call, an unknown tool, invalid arguments."""
MAX_STEPS = 80
"""Limit of calls in a conversation."""


class StopReason(StrEnum):
    """Reason why a conversation ended without another attempt."""

    GAVE_UP = "gave-up"
    LOOP = "loop"
    IDLE = "no-progress"
    INVALID_REPLIES = "invalid-replies"
    STEPS = "too-many-steps"
    BUDGET = "budget"
    CONTEXT = "context-full"


class ConversationStoppedError(Exception):
    """The conversation ended."""

    def __init__(self, stop: StopReason, detail: str) -> None:
        super().__init__(f"{stop}: {detail}")
        self.stop = stop
        self.detail = detail


@dataclass
class ConversationGuard:
    """Counters of one conversation, which end it at a limit."""

    steps: int = 0
    idle_calls: int = 0
    invalid_replies: int = 0
    _call_counts: Counter[str] = field(default_factory=Counter)

    def record_reply(self, *, is_valid: bool) -> int:
        """Count a reply; return how many more invalid ones are allowed.

        Raises:
            ConversationStoppedError: the limit of invalid replies is reached.
        """
        self.invalid_replies = 0 if is_valid else self.invalid_replies + 1
        if self.invalid_replies >= MAX_INVALID_REPLIES:
            raise ConversationStoppedError(
                StopReason.INVALID_REPLIES, f"{MAX_INVALID_REPLIES} invalid replies in a row"
            )
        return MAX_INVALID_REPLIES - self.invalid_replies

    def record_call(self, call: ToolCall, result: str) -> str:
        """Count a call; return a remark for the model, or an empty string.

        Raises:
            ConversationStoppedError: a limit is reached.
        """
        self.steps += 1
        self.idle_calls += 1
        key = hashlib.sha256(json.dumps([call.name, call.arguments, result], sort_keys=True).encode()).hexdigest()
        self._call_counts[key] += 1
        if (times := self._call_counts[key]) >= MAX_REPEATS:
            raise ConversationStoppedError(
                StopReason.LOOP, f"{call.name} was called {times} times with the same result"
            )
        if self.steps >= MAX_STEPS:
            raise ConversationStoppedError(StopReason.STEPS, f"{MAX_STEPS} calls")
        if self.idle_calls >= MAX_IDLE_CALLS:
            raise ConversationStoppedError(StopReason.IDLE, f"{MAX_IDLE_CALLS} calls without a change to the plan")
        if times > 1:
            return "[This call was made before, with the same result. Try something else.]"
        if self.idle_calls == IDLE_WARNING:
            return "[Many calls were made without an edit. Change the plan and test it, or give up.]"
        return ""

    def reset_progress(self) -> None:
        """Reset the counters after a change of the plan."""
        self.idle_calls = 0
        self._call_counts.clear()
