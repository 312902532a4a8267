"""Learned weights of words: what `weights.json` holds and how a text is scored by it.

The file is made by `python -m benchmarks.tags_learn LABELS...` from texts that people labelled, one logistic
regression per output. It holds for each output a bias (with the threshold in it, so zero is the border) and
the weights of features.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from taskdb.tags import Sign

FILE = Path(__file__).with_name("weights.json")
MOST_SIGNS = 4


class Output(NamedTuple):
    """One logistic regression: logarithm of the odds that a text is of a kind."""

    bias: float
    weights: Mapping[str, float]

    def odds(self, found: Mapping[str, str]) -> float:
        """Logarithm of the odds for a text with these features; above 0: it is."""
        weights = self.weights
        return self.bias + sum(weights[name] for name in found if name in weights)

    def signs(self, found: Mapping[str, str], rule: str, most: int = MOST_SIGNS) -> list[Sign]:
        """The features that speak loudest for or against, the strongest first."""
        told = [(self.weights[name], name) for name in found if name in self.weights]
        told.sort(key=lambda sign: (-abs(sign[0]), sign[1]))
        return [Sign(rule=f"{rule}:{name}", quote=found[name], weight=round(w, 2)) for w, name in told[:most]]


@cache
def learned(name: str) -> Output:
    """The output of that name: corrective, adaptive, perfective, refactor, issue-bug, issue-feature, issue-question."""
    return _all()[name]


@cache
def _all() -> dict[str, Output]:
    held = json.loads(FILE.read_text(encoding="ascii"))
    return {name: Output(one["bias"], one["weights"]) for name, one in held["outputs"].items()}
