"""Order in which a run executes its test files."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


def shuffle_files(files: Sequence[str], seed: int) -> list[str]:
    """Return the files in the order of a seed; 0 keeps it."""
    shuffled = list(files)
    if seed:
        shuffled.sort()
        Random(seed).shuffle(shuffled)  # noqa: S311 - an order, not a secret
    return shuffled
