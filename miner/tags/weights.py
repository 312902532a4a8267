"""Learned weights of words (`weights.json`), and the score of a text by them.

The file is written by `python -m benchmarks.tags_learn LABELS...` from labelled texts, a logistic regression per
output. For each output it holds a bias (which includes the threshold, so zero is the border) and the weights of
features.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from taskdb.records.tags import TagEvidence

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
MAX_SIGNS = 4


class LogisticModel(NamedTuple):
    """Logistic regression: log odds that a text is of a kind."""

    bias: float
    weights: Mapping[str, float]

    def compute_log_odds(self, features: Mapping[str, str]) -> float:
        """Return the log odds for a text with these features; above 0: it is of the kind."""
        weights = self.weights
        return self.bias + sum(weights[name] for name in features if name in weights)

    def list_signs(self, features: Mapping[str, str], rule: str, most: int = MAX_SIGNS) -> list[TagEvidence]:
        """Return the features with the largest weights for or against, the strongest first."""
        weighted = [(self.weights[name], name) for name in features if name in self.weights]
        weighted.sort(key=lambda sign: (-abs(sign[0]), sign[1]))
        return [
            TagEvidence(rule=f"{rule}:{name}", quote=features[name], weight=round(w, 2)) for w, name in weighted[:most]
        ]


@cache
def load_model(name: str) -> LogisticModel:
    """Return the model of that name: corrective, adaptive, perfective, refactor or issue-bug, -feature, -question."""
    return _load_models()[name]


@cache
def _load_models() -> dict[str, LogisticModel]:
    held = json.loads(WEIGHTS_FILE.read_text(encoding="ascii"))
    return {name: LogisticModel(output["bias"], output["weights"]) for name, output in held["outputs"].items()}
