"""When a conversation leads nowhere: the same call again and again, much looking and no doing, words without calls."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from backends.llm.base import ToolCall

REPEATS = 4
"""How often the same call with the same result may be made in a row of changes that are none."""
IDLE = 24
"""Calls since the last edit that was taken."""
WARN_IDLE = 16
NONSENSE = 4
"""Replies in a row in which nothing can be done: no call, no such tool, arguments without sense."""
STEPS = 80
"""Calls in a whole conversation."""


class Stop(StrEnum):
    """Why a conversation ended without another attempt."""

    GAVE_UP = "gave-up"
    LOOP = "loop"
    IDLE = "no-progress"
    NONSENSE = "nonsense"
    STEPS = "too-many-steps"
    BUDGET = "budget"
    CONTEXT = "context-full"


class StoppedError(Exception):
    """The conversation is over."""

    def __init__(self, stop: Stop, detail: str) -> None:
        super().__init__(f"{stop}: {detail}")
        self.stop = stop
        self.detail = detail


@dataclass
class Guard:
    """Watches one conversation."""

    steps: int = 0
    idle: int = 0
    senseless: int = 0
    _seen: Counter[str] = field(default_factory=Counter)

    def replied(self, *, sense: bool) -> int:
        """A reply was made; how many more without sense are borne.

        Raises:
            StoppedError: none.
        """
        self.senseless = 0 if sense else self.senseless + 1
        if self.senseless >= NONSENSE:
            raise StoppedError(Stop.NONSENSE, f"{NONSENSE} replies in a row in which nothing could be done")
        return NONSENSE - self.senseless

    def called(self, call: ToolCall, result: str) -> str:
        """A call was done; a remark for the model, or nothing.

        Raises:
            StoppedError: that was enough.
        """
        self.steps += 1
        self.idle += 1
        key = hashlib.sha256(json.dumps([call.name, call.arguments, result], sort_keys=True).encode()).hexdigest()
        self._seen[key] += 1
        if (times := self._seen[key]) >= REPEATS:
            raise StoppedError(Stop.LOOP, f"{call.name} was called {times} times with the same result")
        if self.steps >= STEPS:
            raise StoppedError(Stop.STEPS, f"{STEPS} calls")
        if self.idle >= IDLE:
            raise StoppedError(Stop.IDLE, f"{IDLE} calls without a change to the plan")
        if times > 1:
            return "[You have done this before, with the same result. Do something else.]"
        if self.idle == WARN_IDLE:
            return "[You have looked around for long. Change the plan and test it, or give up.]"
        return ""

    def progressed(self) -> None:
        """The plan was changed: looking again makes sense."""
        self.idle = 0
        self._seen.clear()
