"""Signs: pieces of evidence for or against a kind of change."""

from __future__ import annotations

from typing import NamedTuple

from taskdb.records.tags import ChangeKind


class Sign(NamedTuple):
    """Piece of evidence. `weight`: logarithm of the odds, below 0 for evidence against the kind."""

    kind: ChangeKind
    rule: str
    quote: str
    """Words, label, path or line that it was found in."""
    weight: float
