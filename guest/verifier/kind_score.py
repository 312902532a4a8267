"""Score of a submission to a task with an oracle of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class KindScore:
    """Value of a submission (0..1), its components, a line of explanation, and the kinds of tampering found."""

    value: float
    parts: Mapping[str, float]
    explanation: str
    tampering: Sequence[str] = ()
