"""Adaptive page size: smaller after GitHub could not answer in time, larger again after successes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from miner.github.responses import PageTooLargeError

_T = TypeVar("_T")

FIRST_SUCCESSES_NEEDED = 8
"""Successful answers at the same size before a larger size is tried; doubled after each failure."""
_MAX_SUCCESSES_NEEDED = 128
_MAX_TRIES_AT_ONE = 5
"""How often the smallest size is tried."""


@dataclass
class AdaptivePageSize:
    """Size of the next request, between 1 and `max_size`. Kept in the journal of each repository."""

    size: int
    max_size: int
    successes: int = 0
    successes_needed: int = FIRST_SUCCESSES_NEEDED

    @classmethod
    def from_state(cls, state: dict[str, Any] | None, max_size: int) -> AdaptivePageSize:
        """Restore the state of an earlier run; without a state, begin with the largest size."""
        if not state:
            return cls(size=max_size, max_size=max_size)
        return cls(
            size=min(state["size"], max_size),
            max_size=max_size,
            successes=state["good"],
            successes_needed=state["wait"],
        )

    def to_state(self) -> dict[str, int]:
        """Return the state as JSON data."""
        return {"size": self.size, "good": self.successes, "wait": self.successes_needed}

    def request(self, send: Callable[[int], _T], *, sleep: Callable[[float], None], pause: float) -> _T:
        """Return `send(size)`, with smaller sizes as long as they are too large.

        Args:
            send: raises PageTooLargeError when GitHub could not answer in time.
            sleep: wait for so many seconds.
            pause: seconds before the smallest size is tried again; doubled each time.

        Raises:
            PageTooLargeError: the smallest size is too large, too.
        """
        tries = 0
        while True:
            try:
                answer = send(self.size)
            except PageTooLargeError:
                self._shrink()
                if self.size == 1:
                    tries += 1
                    if tries > _MAX_TRIES_AT_ONE:
                        raise
                    sleep(pause * 2 ** (tries - 1))
            else:
                self._grow()
                return answer

    def _shrink(self) -> None:
        self.size, self.successes, self.successes_needed = (
            max(1, self.size // 2),
            0,
            min(self.successes_needed * 2, _MAX_SUCCESSES_NEEDED),
        )

    def _grow(self) -> None:
        self.successes += 1
        if self.successes >= self.successes_needed and self.size < self.max_size:
            self.size, self.successes = min(self.max_size, max(self.size + 1, self.size * 3 // 2)), 0
