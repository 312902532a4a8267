"""Values of a task that are computed from its record."""

from __future__ import annotations

import hashlib
import re

_TOKEN = re.compile(r"\w+|[^\w\s]")
_TRAIN_SHARE = 0.9


def count_tokens(statement: str) -> int:
    """Return the number of words and signs of a statement."""
    return sum(1 for _ in _TOKEN.finditer(statement))


def choose_split(repo: str) -> str:
    """Return `train` or `test` by a hash of the repository's name, so that a repository is on a single side only."""
    share = int(hashlib.sha256(repo.lower().encode()).hexdigest()[:8], 16) / 0x1_0000_0000
    return "train" if share < _TRAIN_SHARE else "test"
