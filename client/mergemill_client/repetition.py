"""A stop for generations that repeat themselves: a long run of tokens, each of which is nearly certain."""

from __future__ import annotations

import math
from collections.abc import Iterable


class RepetitionStop:
    """Counts tokens in a row that are likelier than a bound; the rule of MiniMax-M1 (arXiv 2506.13585).

    ::

        stop = RepetitionStop()
        for token, logprob in stream:
            if stop.add(logprob):
                break
    """

    def __init__(self, length: int = 3000, probability: float = 0.99) -> None:
        """Make a stop for one generation.

        Args:
            length: tokens in a row after which the generation stops.
            probability: a token counts if its probability is above this; any other ends the run.

        Raises:
            ValueError: the length is below 1, or the probability not between 0 and 1.
        """
        if length < 1 or not 0 < probability < 1:
            raise ValueError(f"needs length >= 1 and 0 < probability < 1, not {length} and {probability}")
        self.length = length
        self.probability = probability
        self._bound = math.log(probability)
        self._run = 0

    def add(self, logprob: float) -> bool:
        """Count a token by its log-probability in nats, and return whether the generation should stop.

        A token without log-probability (NaN) ends the run.
        """
        self._run = self._run + 1 if logprob > self._bound else 0
        return self._run >= self.length

    def find_end(self, logprobs: Iterable[float]) -> int | None:
        """Return after how many tokens a recorded generation would have stopped, or None; nothing is counted."""
        stop = RepetitionStop(self.length, self.probability)
        return next((number for number, logprob in enumerate(logprobs, 1) if stop.add(logprob)), None)
