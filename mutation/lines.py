"""Texts as lists of lines, and the parts that two of them have in common."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

MAX_EXACT_PAIRS = 250_000
"""Old lines times new lines up to which the most frequent lines are compared, too."""


def split_lines(text: bytes) -> list[bytes]:
    """Return the lines with their ends, as git counts them: a lone carriage return ends none."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def count_common_ends(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """Return how many lines are equal before the first difference, and after the last; no line counts twice.

    Only the lines in between have to be compared in full.
    """
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    return head, tail


def build_matcher(old: Sequence[bytes], new: Sequence[bytes]) -> SequenceMatcher[bytes]:
    """Return a matcher of two texts; in long texts the most frequent lines, such as blank lines, are ignored.

    The cost grows with the pairs of equal lines: thousands of blank lines are millions of pairs, and minutes.
    """
    return SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > MAX_EXACT_PAIRS)
