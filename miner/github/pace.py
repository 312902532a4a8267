"""How much is asked for at once: less after GitHub could not answer, slowly more again when it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from miner.github.replies import TooMuch

_T = TypeVar("_T")

FIRST_WAIT = 8
"""So many good answers at one size before a larger one is tried; twice as many after each time that failed."""
_LONGEST_WAIT = 128
_LAST_TRIES = 5
"""How often the smallest size is asked for."""


@dataclass
class Pace:
    """The size of the next request, between 1 and `most`. Kept in the journal, so each repository is learned once."""

    size: int
    most: int
    good: int = 0
    wait: int = FIRST_WAIT

    @classmethod
    def of(cls, kept: dict[str, Any] | None, most: int) -> Pace:
        """The pace that an earlier run kept, or the largest."""
        return cls(most=most, **{**kept, "size": min(kept["size"], most)}) if kept else cls(size=most, most=most)

    def kept(self) -> dict[str, int]:
        """What to keep, as JSON data."""
        return {"size": self.size, "good": self.good, "wait": self.wait}

    def ask(self, question: Callable[[int], _T], *, sleep: Callable[[float], None], pause: float) -> _T:
        """What `question(size)` answers, asked for less and less as long as that is too much.

        Args:
            question: raises TooMuch when GitHub could not answer.
            sleep: waits so many seconds.
            pause: seconds before the smallest size is asked for again; then twice as long, and so on.

        Raises:
            TooMuch: the smallest size is too much, too.
        """
        tries = 0
        while True:
            try:
                answer = question(self.size)
            except TooMuch:
                self._shrink()
                if self.size == 1:
                    tries += 1
                    if tries > _LAST_TRIES:
                        raise
                    sleep(pause * 2 ** (tries - 1))
            else:
                self._grow()
                return answer

    def _shrink(self) -> None:
        self.size, self.good, self.wait = max(1, self.size // 2), 0, min(self.wait * 2, _LONGEST_WAIT)

    def _grow(self) -> None:
        self.good += 1
        if self.good >= self.wait and self.size < self.most:
            self.size, self.good = min(self.most, max(self.size + 1, self.size * 3 // 2)), 0
