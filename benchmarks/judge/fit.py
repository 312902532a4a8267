"""Fit the calibrated model: a weighted sum of signals, with weights shrunk towards equality, and a logistic curve.

With about a hundred rows, free weights fit noise, and equal weights of signals with known directions are hard to beat
(Dawes, The robust beauty of improper linear models, 1979). The model is a ridge regression (scikit-learn) with
non-negative weights. It also gets the mean of the signals, scaled by three: the penalty makes it prefer the mean and
deviate only for strong evidence. The penalty, and the weight of rows selected by the labels, are chosen in nested
folds, all of which are grouped by repository.

The base rate of bad rows is taken from all unselected rows. A base rate per fold would be high where it is low in the
test fold and would distort the order across folds; `base=None` uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

CAP = 2.5
"""Clip limit of a scaled signal, in spreads from the mean."""
EQUAL_WEIGHT_PENALTY = 3.0
FOLDS = 5


@dataclass(frozen=True)
class FitChoice:
    """Hyperparameters chosen inside the folds: penalty of the ridge, weight of rows selected by the labels."""

    penalty: float
    selected_weight: float


CHOICES = tuple(FitChoice(penalty, selected) for penalty, selected in product((300.0, 3000.0), (0.0, 0.3)))


@dataclass(frozen=True)
class FitData:
    """Signals (NaN if undefined), one label, and for each row its repository and whether it was not selected."""

    table: np.ndarray
    truth: np.ndarray
    groups: np.ndarray
    unselected: np.ndarray

    def take(self, rows: np.ndarray) -> FitData:
        """Return some of the rows."""
        return FitData(self.table[rows], self.truth[rows], self.groups[rows], self.unselected[rows])

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (training rows, test rows); no repository is in both."""
        folds = min(FOLDS, len(set(self.groups)))
        yield from GroupKFold(folds).split(self.table, self.truth, self.groups)


@dataclass(frozen=True)
class FittedModel:
    """`odds = intercept + weights . scaled signals`, with the scaling numbers."""

    mean: np.ndarray
    spread: np.ndarray
    weights: np.ndarray
    intercept: float
    choice: FitChoice

    def compute_log_odds(self, table: np.ndarray) -> np.ndarray:
        """Return the log odds of being bad."""
        result: np.ndarray = self.intercept + scale_signals(table, self.mean, self.spread) @ self.weights
        return result

    def predict(self, table: np.ndarray) -> np.ndarray:
        """Return the probability of being bad, 0..1."""
        result: np.ndarray = 1 / (1 + np.exp(-self.compute_log_odds(table)))
        return result


def scale_signals(table: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the scaled and clipped signals."""
    result: np.ndarray = np.nan_to_num(np.clip((table - mean) / spread, -CAP, CAP))
    return result


def compute_scale(data: FitData) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and spread of each signal over the unselected rows; the spread of a constant signal is 1."""
    own = data.table[data.unselected]
    spread = np.nanstd(own, axis=0)
    return np.nanmean(own, axis=0), np.where(spread > 0, spread, 1.0)


def fit_weights(data: FitData, choice: FitChoice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and spread of the signals, and their non-negative weights, before calibration."""
    mean, spread = compute_scale(data)
    columns = scale_signals(data.table, mean, spread)
    n = columns.shape[1]
    common = columns.mean(axis=1, keepdims=True) * np.sqrt(n) * EQUAL_WEIGHT_PENALTY
    counts = np.where(data.unselected, 1.0, choice.selected_weight)
    some = counts > 0
    model = Ridge(alpha=choice.penalty, positive=True)
    model.fit(np.hstack([columns, common])[some], data.truth[some].astype(float), sample_weight=counts[some])
    weights = model.coef_[:n] + model.coef_[n] * EQUAL_WEIGHT_PENALTY / np.sqrt(n)
    return mean, spread, weights


def predict_out_of_fold(data: FitData, choice: FitChoice) -> np.ndarray:
    """Return the weighted sum of each row with weights fitted to other repositories."""
    sums = np.zeros(len(data.truth))
    for learn, judge in data.folds():
        mean, spread, weights = fit_weights(data.take(learn), choice)
        sums[judge] = scale_signals(data.table[judge], mean, spread) @ weights
    return sums


def fit(data: FitData, base: float | None) -> FittedModel:
    """Fit the model: hyperparameters by nested folds, then weights, then the logistic curve.

    Args:
        data: the rows.
        base: expected share of bad rows; None for the share in `data`.
    """
    own = data.unselected
    tried = [(predict_out_of_fold(data, choice), choice) for choice in CHOICES]
    _, choice = max(tried, key=lambda pair: round(float(roc_auc_score(data.truth[own], pair[0][own])), 3))
    mean, spread, weights = fit_weights(data, choice)
    sums = (scale_signals(data.table, mean, spread) @ weights)[own]
    middle, width = float(sums.mean()), float(sums.std()) or 1.0
    curve = LogisticRegression(C=1.0).fit(((sums - middle) / width)[:, None], data.truth[own])
    slope = max(0.0, float(curve.coef_[0, 0])) / width
    share = float(data.truth[own].mean()) if base is None else base
    return FittedModel(mean, spread, weights * slope, float(np.log(share / (1 - share))) - slope * middle, choice)


def cross_validate_nested(data: FitData, base: float | None) -> tuple[np.ndarray, list[FitChoice]]:
    """Return the probability of each row from a model fitted to other repositories, and the chosen hyperparameters."""
    scores, chosen = np.zeros(len(data.truth)), []
    for learn, judge in data.folds():
        fitted = fit(data.take(learn), base)
        chosen.append(fitted.choice)
        scores[judge] = fitted.predict(data.table[judge])
    return scores, chosen


def score_equal_weights(data: FitData) -> np.ndarray:
    """Return the mean of the scaled signals; only mean and spread are fitted, on other repositories."""
    scores = np.zeros(len(data.truth))
    for learn, judge in data.folds():
        mean, spread = compute_scale(data.take(learn))
        scores[judge] = scale_signals(data.table[judge], mean, spread).mean(axis=1)
    return scores
