"""Texts as lines, and what two of them have in common at their ends."""

from __future__ import annotations

from collections.abc import Sequence


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
