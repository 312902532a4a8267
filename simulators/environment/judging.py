"""The judge of an episode: a model's `{reasoning, reward: 0|1}`, read raw, from a fence, or as the first object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

MAX_ANSWER_CHARACTERS = 200_000
"""A longer answer is not read."""
_FENCE = re.compile(r"```[ \t]*\w*[ \t]*\n(.*?)```", re.DOTALL)


class EpisodeVerdict(BaseModel):
    """Why the agent earns what it earns, and 1 where it did everything right, else 0."""

    reasoning: str
    reward: int


@dataclass(frozen=True, kw_only=True)
class EpisodeJudgement:
    """A reward, 0 or 1, with its reasons; None where there is none, and `problem` is then the cause."""

    reward: float | None
    reasoning: str = ""
    problem: str = ""


def read_judgement(text: str) -> EpisodeJudgement | None:
    """Return the judgement in an answer, None where it cannot be read.

    A reward other than 0 and 1 is not read as a reward: which of the two a number of another scale is would be a guess.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        return None
    for candidate in _iterate_objects(text):
        reward = candidate.get("reward")
        if isinstance(reward, int | float) and reward in (0, 1):  # True and False, too
            return EpisodeJudgement(reward=float(reward), reasoning=str(candidate.get("reasoning") or ""))
    return None


def _iterate_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the whole text, each fenced block, and the first object within it, where they are JSON objects."""
    decoder = json.JSONDecoder(strict=False)
    start = text.find("{")
    for part in (text.strip(), *(block.strip() for block in _FENCE.findall(text)), text[start:] if start >= 0 else ""):
        try:
            value, end = decoder.raw_decode(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and end:
            yield value
