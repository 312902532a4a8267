"""Metrics of scores against labels, with intervals by bootstrap over rows (1,000 draws, seed 0, 95 %)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

BOOTSTRAP_DRAWS = 1000
TOP_SHARE = 0.1
"""Share of rows in the most suspicious group."""
BINS = 5

Metric = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class MetricValue:
    """A value with its interval; NaN where it is undefined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return "-" if np.isnan(self.value) else f"{self.value:.3f} ({self.low:.2f}-{self.high:.2f})"


def compute_precision_at_top(truth: np.ndarray, scores: np.ndarray) -> float:
    """Return the share of bad rows among the most suspicious tenth; ties are in row order."""
    n = max(1, round(TOP_SHARE * len(truth)))
    return float(truth[np.argsort(-scores, kind="stable")[:n]].mean())


METRICS: dict[str, Metric] = {
    "AUROC": lambda truth, scores: float(roc_auc_score(truth, scores)),
    "average precision": lambda truth, scores: float(average_precision_score(truth, scores)),
    "precision in top 10 %": compute_precision_at_top,
}
CALIBRATION: dict[str, Metric] = {
    "Brier": lambda truth, scores: float(brier_score_loss(truth, scores)),
    "Brier of the base rate": lambda truth, _: float(np.mean(truth) * (1 - np.mean(truth))),
}


def measure_metric(metric: Metric, truth: np.ndarray, scores: np.ndarray) -> MetricValue:
    """Return a metric with its interval."""
    if len(set(truth)) < 2:
        return MetricValue(np.nan, np.nan, np.nan)
    random = np.random.default_rng(0)
    drawn: list[float] = []
    while len(drawn) < BOOTSTRAP_DRAWS:
        rows = random.integers(0, len(truth), len(truth))
        if 0 < truth[rows].sum() < len(rows):
            drawn.append(metric(truth[rows], scores[rows]))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return MetricValue(metric(truth, scores), float(low), float(high))


def compute_reliability(truth: np.ndarray, scores: np.ndarray) -> list[tuple[int, float, float]]:
    """Return (rows, mean probability, share of bad rows) for groups of equal size, least suspicious first."""
    parts = np.array_split(np.argsort(scores, kind="stable"), BINS)
    return [(len(part), float(scores[part].mean()), float(truth[part].mean())) for part in parts]
