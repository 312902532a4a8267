"""Texts as lines, and what two of them have in common at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

MANY_PAIRS = 250_000
"""Old lines times new lines, from which on the commonest lines are not looked at."""


def by_line_feed(text: bytes) -> list[bytes]:
    """Lines with their ends, as git counts them: a lone carriage return ends none."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def alike(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines are the same before the first difference, and how many behind the last; no line counts twice.

    What lies between is all that has to be compared in full.
    """
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    return head, tail


def matcher(old: Sequence[bytes], new: Sequence[bytes]) -> SequenceMatcher[bytes]:
    """What two texts of lines have in common; in long ones their commonest lines, such as blank ones, are left aside.

    Comparing goes with the pairs of lines alike: thousands of blank lines are millions of pairs, and minutes.
    """
    return SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > MANY_PAIRS)
